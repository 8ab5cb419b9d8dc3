/** What the errors of `pg` mean. */
import { describe, expect, it } from 'vitest';
import { isRefusal, toStoreError } from '../../src/stores/postgres/errors.ts';

const failure = (code: string, severity: string): Error => Object.assign(new Error('said'), { code, severity });
const codeOf = (error: Error): unknown => (toStoreError(error, 'sent', 'lessor') as { code?: unknown }).code;

describe('errors of PostgreSQL', () => {
  it.each([
    ['23505', 'ERROR'],
    ['40001', 'FEHLER'],
    ['55P03', 'ОШИБКА'],
    ['57014', '错误'],
  ])('%s has undone the statement, also as %s', (code, severity) => {
    expect(isRefusal(failure(code, severity))).toBe(true);
    expect(codeOf(failure(code, severity))).toBe('STORE_UNAVAILABLE');
  });

  it.each([
    ['57P01', 'FATAL'],
    ['57P01', 'ВАЖНО'],
    ['57P02', '致命错误'],
    ['25P03', 'SCHWERWIEGEND'],
    ['XX000', 'PANIC'],
    ['08006', 'ERROR'],
    ['ECONNRESET', ''],
  ])('%s leaves the outcome open, also as %s', (code, severity) => {
    expect(isRefusal(failure(code, severity))).toBe(false);
    expect(codeOf(failure(code, severity))).toBe('OUTCOME_UNKNOWN');
  });
});
