/**
 * Serves the page on this machine only: node examples/inspector/serve.js [PORT]
 */
import { build } from 'esbuild';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

const bundle = await build({
  entryPoints: [here('page.js')],
  bundle: true,
  format: 'esm',
  write: false,
  // A registry needs `node:util` only. The rest belongs to the stores, which the page leaves out.
  alias: { 'node:util': here('node-util.js') },
  external: ['node:*', 'better-sqlite3', 'ioredis', 'libsql', 'pg', 'redis'],
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
