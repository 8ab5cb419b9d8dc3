import { createWebSocketInspector } from '@statelyai/inspect';

const PATIENCE_MILLISECONDS = 2000;

/** The inspector whose server listens at the URL, or null when none does. Close it, or it keeps the process alive. */
export async function connectInspector(url) {
  const inspector = createWebSocketInspector({ url, autoStart: false });
  inspector.start();
  const socket = inspector.adapter.ws;
  const isThere = await new Promise((resolve) => {
    const patience = setTimeout(resolve, PATIENCE_MILLISECONDS, false);
    const answer = (isThere) => {
      clearTimeout(patience);
      resolve(isThere);
    };
    socket.addEventListener('open', () => answer(true));
    // In place of the inspector's own: that tries again every 5 seconds, for ever, and the process would never end.
    socket.onerror = () => answer(false);
  });
  if (!isThere) {
    inspector.stop();
    return null;
  }
  return {
    inspect: inspector.inspect,
    /** Sends what is on its way, and hangs up. */
    async close() {
      await new Promise((resolve) => setTimeout(resolve));
      inspector.stop();
    },
  };
}
