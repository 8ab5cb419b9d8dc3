/**
 * Serves the page on this machine only: node examples/inspector/serve.js [PORT]
 */
import { build } from 'esbuild';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const BUILTINS = ['crypto', 'fs', 'os', 'path', 'perf_hooks', 'util'];

const bundle = await build({
  entryPoints: [here('page.js')],
  bundle: true,
  format: 'esm',
  write: false,
  alias: Object.fromEntries(BUILTINS.map((name) => [`node:${name}`, here('node-builtins.cjs')])),
  // Clients of stores, which a page never opens.
  external: ['better-sqlite3', 'ioredis', 'libsql', 'node:sqlite', 'pg', 'redis'],
});

const files = {
  '/': ['text/html', readFileSync(here('index.html'))],
  '/receiver.html': ['text/html', readFileSync(here('receiver.html'))],
  '/page.js': ['text/javascript', bundle.outputFiles[0].contents],
};

const server = createServer(({ url }, response) => {
  const [type, contents] = files[url.replace(/\?.*/, '')] ?? [];
  if (!type) return response.writeHead(404).end();
  response.writeHead(200, { 'content-type': `${type}; charset=utf-8` }).end(contents);
});
server.listen(Number(process.argv[2] ?? 4000), '127.0.0.1', () => {
  const url = `http://127.0.0.1:${server.address().port}/`;
  console.log(`Open ${url}\nWithout a network: ${url}?inspector=/receiver.html`);
});
