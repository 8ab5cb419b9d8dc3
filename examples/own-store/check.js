/** What a store refuses before it does anything. */

export function name(argument, value) {
  const fits = typeof value === 'string' && value !== '' && Buffer.byteLength(value) <= 1024;
  if (!fits || value.includes('\0') || !value.isWellFormed()) throw wrong(argument, 'a name', value);
}

export function seconds(argument, value) {
  if (!(Number.isFinite(value) && value > 0 && value <= 1e9)) throw wrong(argument, 'seconds above 0', value);
}

export function object(argument, value) {
  if (typeof value !== 'object' || value === null) throw wrong(argument, 'an object', value);
}

export function signal(options) {
  if (options?.signal !== undefined && !(options.signal instanceof AbortSignal)) {
    throw wrong('signal', 'an AbortSignal', options.signal);
  }
}

export function acquire(request) {
  object('request', request);
  for (const key of ['runId', 'workerId', 'acquisitionId']) name(key, request[key]);
  seconds('ttlSeconds', request.ttlSeconds);
  if (![undefined, 'extend', 'refuse'].includes(request.reacquire))
    throw wrong('reacquire', 'a word', request.reacquire);
}

export function renew(leases, ttlSeconds) {
  if (!Array.isArray(leases)) throw wrong('leases', 'a list', leases);
  for (const lease of leases) {
    release(lease);
    token(lease.fencingToken);
  }
  seconds('ttlSeconds', ttlSeconds);
}

export function release(lease) {
  object('lease', lease);
  for (const key of ['runId', 'workerId', 'acquisitionId']) name(key, lease[key]);
  if (lease.fencingToken !== undefined) token(lease.fencingToken);
}

export function revoke(runId, why) {
  name('runId', runId);
  object('why', why);
  name('by', why.by);
  name('reason', why.reason);
}

export function query({ state, workerId, prefix }) {
  if (![undefined, 'free', 'held', 'expired'].includes(state)) throw wrong('state', 'a state', state);
  if (workerId !== undefined) name('workerId', workerId);
  if (prefix !== undefined && prefix !== '') name('prefix', prefix);
}

function token(value) {
  if (!(Number.isSafeInteger(value) && value >= 1)) throw wrong('fencingToken', 'a positive integer', value);
}

function wrong(argument, expected, value) {
  return new TypeError(`Expected \`${argument}\` to be ${expected}, got ${String(value)} (${typeof value})`);
}
