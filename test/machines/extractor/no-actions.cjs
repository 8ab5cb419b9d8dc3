// In place of xstate 4's action creators, which the extractor calls for actions that stand inline in a chart. Ours have none.
module.exports = new Proxy(
  {},
  {
    get: (_target, name) => () => {
      throw new Error(`Expected every action of the chart to be a name, but one is an inline \`${String(name)}\``);
    },
  },
);
