/**
 * The inspector's own server: shows in a browser what a Node process tells it.
 *
 * Run it: node examples/inspector/server.js [PORT [INSPECTOR-URL]]
 */
import { createInspectorServer } from '@statelyai/inspect/server';
import { Server } from 'node:http';

const [port = '8080', url = 'https://stately.ai/inspect'] = process.argv.slice(2);

// Left alone, it would listen to the whole network.
const { listen } = Server.prototype;
Server.prototype.listen = function listenHere(wanted, done) {
  return listen.call(this, wanted, '127.0.0.1', () => {
    console.log(
      `Open http://localhost:${port} first, then run: node examples/inspector/node.js ws://127.0.0.1:${port}`,
    );
    done?.();
  });
};

createInspectorServer({ port: Number(port), url, autoOpen: false });
