import { inspect } from 'node:util';

/** What JSON can hold. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** A copy of the value that shares nothing with it. @throws TypeError for what JSON would drop, bend or refuse. */
export function copyJson(argument: string, value: unknown): Json {
  return JSON.parse(JSON.stringify(checked(argument, value, []))) as Json;
}

/** @param within - the objects that the value stands in, to find one that holds itself. */
function checked(argument: string, value: unknown, within: readonly object[]): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      if (Number.isFinite(value)) return value;
      break;
    case 'object': {
      if (value === null) return value;
      if (within.includes(value))
        throw new TypeError(`Expected \`${argument}\` to be a JSON value, but it holds itself`);
      const inner = [...within, value];
      // From a sparse array too: its holes are no JSON.
      if (Array.isArray(value))
        return Array.from(value, (item, index) => checked(`${argument}[${index}]`, item, inner));
      if (isPlain(value)) {
        return Object.fromEntries(
          Object.entries(value).map(([key, item]) => [key, checked(`${argument}.${key}`, item, inner)]),
        );
      }
    }
  }
  throw new TypeError(`Expected \`${argument}\` to be a JSON value, got ${inspect(value, { depth: 0 })}`);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
