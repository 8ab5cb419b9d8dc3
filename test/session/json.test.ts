import { describe, expect, it } from 'vitest';
import { copyJson } from '../../src/session/json.ts';

describe('a value for a document', () => {
  it('is refused by name where it holds itself, but not where it holds the same thing twice', () => {
    const one: { other?: unknown } = {};
    const other = { list: [one] };
    one.other = other;
    expect(() => copyJson('value', one)).toThrow(
      new TypeError('Expected `value.other.list[0]` to be a JSON value, but it holds itself'),
    );
    const shared = { a: 1 };
    expect(copyJson('value', [shared, { shared }])).toEqual([{ a: 1 }, { shared: { a: 1 } }]);
  });

  it('is refused where JSON would bend it: a hole in an array is no null', () => {
    const sparse: unknown[] = [1];
    sparse[2] = 3;
    expect(() => copyJson('value', sparse)).toThrow('`value[1]`');
  });
});
