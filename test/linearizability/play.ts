/**
 * Plays one run: clients that acquire, renew, release, read and write at once, under leases that they may have lost long ago.
 * Between the rounds all of them sleep past the ttl, so that what comes after an expiry is seen.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { randomOf } from '../support/random.ts';
import { Client, type Asked } from './clients.ts';
import { inOrder, type Ask, type Call, type Claim } from './history.ts';

export interface RunOptions {
  /** One for each client. */
  readonly stores: readonly Asked[];
  readonly runId: string;
  readonly seed: number;
  /** Whether the stores keep documents. @default true */
  readonly writes?: boolean;
}

const ROUNDS = 3;
const STEPS = 6;
const SHORTEST_TTL = 50;
const LONGEST_TTL = 300;
/** Fewer than the clients, so that two of them are one worker, of which each may take the lease from the other. */
const WORKERS = ['w1', 'w2', 'w3', 'w4', 'w5', 'w6'];

/** The calls in the order in which they were made. The seed draws the steps; how they interleave is the machines'. */
export async function playRun({ stores, runId, seed, writes = true }: RunOptions): Promise<readonly Call[]> {
  const random = randomOf(seed);
  const ttl = Math.round(SHORTEST_TTL + random() ** 2 * (LONGEST_TTL - SHORTEST_TTL));
  const calls: Call[] = [];
  const players = stores.map((store, index) => {
    const client = new Client(store, index, runId, calls);
    const worker = WORKERS[index % WORKERS.length]!;
    return new Player({ client, worker, name: `${worker}.${index}`, ttl, writes, random: randomOf(seed * 31 + index) });
  });
  for (let round = 0; round < ROUNDS; round += 1) {
    await Promise.all(players.map((player) => player.playRound(round > 0)));
    await sleep(ttl * (1.05 + 0.3 * random()));
  }
  await Promise.all(players.map((player) => player.playLate()));
  return inOrder(calls);
}

interface PlayerOptions {
  readonly client: Client;
  readonly worker: string;
  readonly name: string;
  readonly ttl: number;
  readonly writes: boolean;
  readonly random: () => number;
}

class Player {
  readonly #options: PlayerOptions;
  /** The newest first. Old ones too: a worker may find out late. */
  readonly #claims: Claim[] = [];
  #acquires = 0;
  #writes = 0;
  /** The last acquire. */
  #asked: (Ask & { kind: 'acquire' }) | undefined;
  #isAnswered = true;
  /** Nothing has told it that its newest claim is over. */
  #believes = false;

  constructor(options: PlayerOptions) {
    this.#options = options;
  }

  async playRound(afterSleep: boolean): Promise<void> {
    if (afterSleep) await this.playLate();
    for (let step = 0; step < STEPS; step += 1) {
      await this.#pause();
      if (this.#isAnswered) await this.#play();
      else await this.#settle(this.#options.random());
    }
  }

  /** What is worth trying when every lease has just expired: by its last holder at once, by others a little later. */
  async playLate(): Promise<void> {
    const newest = this.#claims[0];
    if (newest === undefined || !this.#believes) {
      await this.#pause();
      return this.#play();
    }
    const what = this.#options.random();
    if (what < 0.35) await this.#renew(newest);
    else if (what < 0.7) await this.#write(newest);
    else if (what < 0.85) await this.#ask({ kind: 'release', ...newest });
    else await this.#acquire(this.#newAcquire());
  }

  async #play(): Promise<void> {
    const { random } = this.#options;
    const what = random();
    const claim = this.#believes ? this.#claims[0] : this.#claims[Math.floor(random() ** 2 * this.#claims.length)];
    if (what < 0.05) await this.#ask({ kind: 'fence' });
    else if (what < 0.15) await this.#ask({ kind: 'read' });
    else if (what < 0.17) await this.#ask({ kind: 'revoke' });
    else if (what < 0.22 && this.#asked) await this.#acquire(this.#asked);
    else if (claim === undefined || what < (this.#believes ? 0.3 : 0.6)) await this.#acquire(this.#newAcquire());
    else if (what < 0.7) await this.#renew(claim);
    else if (what < 0.8) await this.#ask({ kind: 'release', ...claim });
    // Two at once are the lease's own affair: one of them may be a conflict.
    else await Promise.all(random() < 0.3 ? [this.#write(claim), this.#write(claim)] : [this.#write(claim)]);
  }

  /** After an acquire without an answer: the same again, or it is given back by its id, or things go on without it. */
  async #settle(what: number): Promise<void> {
    this.#isAnswered = true;
    const { worker, acquisition } = this.#asked!;
    if (what < 0.5) await this.#acquire(this.#asked!);
    else if (what < 0.8) await this.#ask({ kind: 'release', worker, acquisition, token: undefined });
  }

  #newAcquire(): Ask & { kind: 'acquire' } {
    const { worker, name, random } = this.#options;
    this.#acquires += 1;
    const acquisition = `${name}.${this.#acquires}`;
    return { kind: 'acquire', worker, acquisition, ttl: this.#ttl(), extend: random() < 0.5 };
  }

  async #acquire(ask: Ask & { kind: 'acquire' }): Promise<void> {
    this.#asked = ask;
    const answer = await this.#ask(ask);
    this.#isAnswered = answer !== null;
    if (answer?.is !== 'granted') return;
    const { worker, acquisition } = ask;
    const claim = { worker, token: answer.token, acquisition };
    this.#claims.unshift(claim);
    this.#believes = true;
    // The first fenced access after a take-over is the one that has to wait for an older write.
    if (this.#options.writes && this.#options.random() < 0.5) await this.#write(claim);
  }

  async #renew(claim: Claim): Promise<void> {
    await this.#ask({ kind: 'renew', ttl: this.#ttl(), ...claim });
  }

  async #write(claim: Claim): Promise<void> {
    if (!this.#options.writes) return this.#renew(claim);
    const opened = await this.#ask({ kind: 'open', ...claim });
    if (opened?.is !== 'opened') return;
    if (this.#options.random() < 0.5) await this.#pause();
    this.#writes += 1;
    const content = `${this.#options.name}#${this.#writes}`;
    await this.#ask({ kind: 'commit', version: opened.version, content, ...claim });
  }

  async #ask(ask: Ask): ReturnType<Client['ask']> {
    const { client, random } = this.#options;
    const answer = await client.ask(ask, random() < 0.02 ? random() * 5 : undefined);
    // A server that cannot be asked will not be there at once.
    if (answer === undefined) await sleep(20);
    if (answer?.is === 'lost' || answer?.is === 'released' || answer?.is === 'kept') this.#believes = false;
    return answer;
  }

  #ttl(): number {
    const { ttl, random } = this.#options;
    return random() < 0.8 ? ttl : Math.ceil(ttl / 2);
  }

  async #pause(): Promise<void> {
    const { ttl, random } = this.#options;
    const pause = random() ** 2 * ttl * 0.3;
    if (pause < 2) await new Promise(setImmediate);
    else await sleep(pause);
  }
}
