/** The worker's own protocol: it uploads a file in parts, and only while it has the run. */
import { setup } from 'xstate';

export const uploadMachine = setup({
  guards: {
    isAccepted: ({ event }) => event.accepted,
  },
}).createMachine({
  id: 'upload',
  initial: 'idle',
  states: {
    idle: { on: { start: { guard: 'isAccepted', target: 'uploading' } } },
    uploading: {
      on: {
        part: [{ guard: 'isAccepted' }, { target: 'stopped' }],
        finish: [{ guard: 'isAccepted', target: 'finished' }, { target: 'stopped' }],
      },
    },
    stopped: { on: { start: { guard: 'isAccepted', target: 'uploading' } } },
    finished: {},
  },
});
