/** The door: every argument is checked once, here, in one voice. Behind it nothing is checked again. */
import { inspect } from 'node:util';

/** The longest name of a run or a worker, in bytes of UTF-8. */
export const MAX_NAME_BYTES = 1024;

/** A run's or a worker's name. Nothing is trimmed or normalised: two names are one exactly when their characters are. */
export function checkName(argument: string, value: unknown): asserts value is string {
  if (typeof value !== 'string') throw typeError(argument, 'a string', value);
  if (value === '') throw rangeError(argument, 'not to be empty', value);
  if (value.includes('\0')) throw rangeError(argument, 'to hold no NUL character', value);
  if (!value.isWellFormed()) throw rangeError(argument, 'to hold no lone surrogate', value);
  if (value.length * 3 > MAX_NAME_BYTES && Buffer.byteLength(value) > MAX_NAME_BYTES) {
    throw rangeError(argument, `to have at most ${MAX_NAME_BYTES} bytes of UTF-8`, value);
  }
}

/** A string that is only compared, such as a lease id. */
export function checkString(argument: string, value: unknown): asserts value is string {
  if (typeof value !== 'string') throw typeError(argument, 'a string', value);
}

/** A point in time, in seconds. Negative ones and fractions are fine. */
export function checkNow(argument: string, value: unknown): asserts value is number {
  if (typeof value !== 'number') throw typeError(argument, 'a number of seconds', value);
  if (!Number.isFinite(value)) throw rangeError(argument, 'to be finite', value);
}

/** A duration in seconds, above 0 and at most `most`. */
export function checkDuration(argument: string, value: unknown, most = Number.MAX_VALUE): asserts value is number {
  if (typeof value !== 'number') throw typeError(argument, 'a number of seconds', value);
  if (!(Number.isFinite(value) && value > 0))
    throw rangeError(argument, 'to be a finite number of seconds above 0', value);
  if (value > most) throw rangeError(argument, `to be at most ${most} seconds`, value);
}

/** A wait in seconds: 0 is no wait. */
export function checkWait(argument: string, value: unknown): asserts value is number {
  if (typeof value !== 'number') throw typeError(argument, 'a number of seconds', value);
  if (!(value >= 0)) throw rangeError(argument, 'to be 0 seconds or more', value);
}

/** A token of the right form. Whether it was ever issued is an answer, not an error. */
export function checkFencingToken(argument: string, value: unknown): asserts value is number {
  if (typeof value !== 'number') throw typeError(argument, 'a number', value);
  if (!(Number.isSafeInteger(value) && value >= 1)) throw rangeError(argument, 'to be a positive safe integer', value);
}

/** A token as a driver gives it: a number, a bigint or decimal digits. Read exactly, or refused. */
export function toFencingToken(value: unknown): number {
  const token = typeof value === 'string' && !/^\d+$/.test(value) ? Number.NaN : Number(value);
  checkFencingToken('fencingToken', token);
  return token;
}

export function checkSignal(argument: string, value: unknown): asserts value is AbortSignal | undefined {
  if (value !== undefined && !(value instanceof AbortSignal)) throw typeError(argument, 'an AbortSignal', value);
}

export function checkFunction(argument: string, value: unknown): asserts value is (...args: never[]) => unknown {
  if (typeof value !== 'function') throw typeError(argument, 'a function', value);
}

export function checkObject(argument: string, value: unknown): asserts value is object {
  if (typeof value !== 'object' || value === null) throw typeError(argument, 'an object', value);
}

/** One of a few words. */
export function checkOneOf<const Word extends string>(
  argument: string,
  value: unknown,
  words: readonly Word[],
): asserts value is Word {
  if (!words.includes(value as Word)) throw typeError(argument, words.map((word) => `'${word}'`).join(' or '), value);
}

function typeError(argument: string, expected: string, value: unknown): TypeError {
  return new TypeError(`Expected \`${argument}\` to be ${expected}, got ${show(value)} (${typeName(value)})`);
}

export function rangeError(argument: string, expected: string, value: unknown): RangeError {
  return new RangeError(`Expected \`${argument}\` ${expected}, got ${show(value)}`);
}

function show(value: unknown): string {
  const text = Object.is(value, -0) ? '-0' : inspect(value, { depth: 0, breakLength: Infinity });
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  return typeof value === 'object' ? (value.constructor?.name ?? 'object') : typeof value;
}
