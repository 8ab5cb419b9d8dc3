/** What lessor is measured beside, installed on demand and apart from this package's own dependencies. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const VERSIONS = {
  redlock: '4.2.0',
  '@sesamecare-oss/redlock': '1.4.0',
  'redlock-universal': '0.8.5',
  'redis-semaphore': '5.8.0',
  'proper-lockfile': '4.1.2',
};

export const CACHE = fileURLToPath(new URL('../../node_modules/.cache/lessor-bench', import.meta.url));

/** The package's exports, as `require` sees them. Their peers, such as `ioredis`, are those of this package. */
export function load(name) {
  install();
  return createRequire(join(CACHE, 'package.json'))(name);
}

export const versionOf = (name) => `${name} ${VERSIONS[name]}`;

function install() {
  const manifest = join(CACHE, 'package.json');
  const wanted = JSON.stringify({ private: true, dependencies: VERSIONS });
  if (existsSync(manifest) && existsSync(join(CACHE, 'node_modules')) && readFileSync(manifest, 'utf8') === wanted)
    return;
  console.log(`installing ${Object.keys(VERSIONS).map(versionOf).join(', ')} into ${CACHE}`);
  mkdirSync(CACHE, { recursive: true });
  writeFileSync(manifest, wanted);
  const flags = ['--legacy-peer-deps', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'];
  execFileSync('npm', ['install', '--prefix', CACHE, ...flags], { cwd: CACHE, stdio: ['ignore', 'ignore', 'inherit'] });
}
