import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mutated } from './mutant.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LEFT_OUT = ['.git', 'node_modules'];
/** A test that takes longer has noticed something. So has a file that does, by hanging. */
const TEST_SECONDS = 20;
const FILE_SECONDS = 90;
/** Enough for each of the schedules' outcomes to occur. */
const ENVIRONMENT = { LESSOR_BUILT: '1', LESSOR_SCHEDULES: '3000', NO_COLOR: '1' };

const PASSED = 'passed';
const FAILED = 'failed';
const HUNG = 'hung';
const NOTHING_RAN = 'no test ran';
/** Every test passed, and the file left something behind: some of a file may do so when the rest does not run. */
const LEFT = 'something was left behind';
const SOUND = [PASSED, LEFT];

/** A copy of the working tree, in which one file at a time has an error. */
export class WorkingCopy {
  #folder = mkdtempSync(join(tmpdir(), 'lessor-mutation-'));
  /** What the tests said of the library as it is. */
  #sound = new Map();
  /** Ends what is running. */
  #stop = () => undefined;

  constructor() {
    cpSync(ROOT, this.#folder, { recursive: true, filter: (path) => !LEFT_OUT.includes(basename(path)) });
    symlinkSync(join(ROOT, 'node_modules'), this.#path('node_modules'));
  }

  read(file) {
    return readFileSync(this.#path(file), 'utf8');
  }

  /** Whether its tests find the error. They must pass without it, else they would find any. */
  async judge(mutant) {
    const start = performance.now();
    const sound = await this.#withoutError(mutant);
    const verdict = SOUND.includes(sound)
      ? verdictOf(await this.#withError(mutant), sound)
      : `not judged: ${sound} without it`;
    return { verdict, seconds: (performance.now() - start) / 1000 };
  }

  remove() {
    this.#stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #withoutError({ tests, titled }) {
    const key = JSON.stringify([tests, titled]);
    if (!this.#sound.has(key)) this.#sound.set(key, await this.#test({ tests, titled }));
    return this.#sound.get(key);
  }

  async #withError(mutant) {
    const { file, built = false } = mutant;
    const text = this.read(file);
    writeFileSync(this.#path(file), mutated(text, mutant));
    try {
      if (built && (await this.#build()) !== 0) return NOTHING_RAN;
      return await this.#test(mutant);
    } finally {
      writeFileSync(this.#path(file), text);
      if (built) await this.#build();
    }
  }

  async #test({ tests, titled }) {
    const report = this.#path('report.json');
    rmSync(report, { force: true });
    const only = titled === undefined ? [] : ['-t', titled];
    const limits = [`--testTimeout=${TEST_SECONDS * 1000}`, `--hookTimeout=${TEST_SECONDS * 1000}`];
    const once = ['--bail=1', '--maxWorkers=1', ...limits];
    const told = ['--reporter=json', `--outputFile=${report}`];
    const code = await this.#run('vitest/vitest.mjs', ['run', ...tests, ...only, ...once, ...told]);
    if (code === 'timeout') return HUNG;
    const { numFailedTests, numPassedTests } = JSON.parse(readFileSync(report, 'utf8'));
    if (numFailedTests > 0) return FAILED;
    if (numPassedTests === 0) return NOTHING_RAN;
    return code === 0 ? PASSED : LEFT;
  }

  #build() {
    return this.#run('typescript/bin/tsc', ['-p', 'tsconfig.build.json']);
  }

  /** In a process group of its own, so that a hang ends with all that it has started. */
  #run(program, words) {
    const child = spawn(process.execPath, [this.#path(`node_modules/${program}`), ...words], {
      cwd: this.#folder,
      env: { ...process.env, ...ENVIRONMENT },
      stdio: 'ignore',
      detached: true,
    });
    const { pid } = child;
    if (pid === undefined) throw new Error(`${program} could not be started`);
    this.#stop = () => process.kill(-pid, 'SIGKILL');
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#stop();
        resolve('timeout');
      }, FILE_SECONDS * 1000);
      child.once('exit', (code, signal) => {
        this.#stop = () => undefined;
        clearTimeout(timer);
        resolve(code ?? signal);
      });
    });
  }

  #path(file) {
    return join(this.#folder, file);
  }
}

/** @param sound - what the same tests say without the error. */
function verdictOf(found, sound) {
  if (found === NOTHING_RAN) return 'broken build';
  if (found === PASSED || found === sound) return 'survived';
  return found === FAILED ? 'killed' : `killed (${found})`;
}
