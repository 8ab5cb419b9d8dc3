import { describe, expect, it } from 'vitest';
import { duration, moment, printable } from '../../src/cli/terminal.ts';

describe('terminal', () => {
  it('a plain name is shown as it is', () => {
    for (const name of ['nightly-report', 'a:b', 'Größe', '夜', "it's", 'a b', '🚀'])
      expect(printable(name)).toBe(name);
  });

  it('a name cannot move the cursor, start a line, turn the text round or hide', () => {
    expect(printable('\u001b[2Jgone')).toBe('"\\u001b[2Jgone"');
    expect(printable('a\nb\tc')).toBe('"a\\nb\\tc"');
    expect(printable('\u009b31m')).toBe('"\\u009b31m"');
    expect(printable('abc\u202Edef')).toBe('"abc\\u202edef"');
    expect(printable('a\u200Bb')).toBe('"a\\u200bb"');
    expect(printable('\u{E0041}')).toBe('"\\udb40\\udc41"');
  });

  it('blanks at either end and quotes are visible', () => {
    expect(printable(' a')).toBe('" a"');
    expect(printable('"a"')).toBe('"\\"a\\""');
    expect(printable('')).toBe('""');
  });

  it('a duration has two units at most', () => {
    const texts = [0, 0.04, 0.44, 9.96, 12.4, 59.6, 60, 185, 7800, 86_400, 356_400].map(duration);
    const expected = [
      '0 s',
      '0 s',
      '0.4 s',
      '10 s',
      '12 s',
      '1 min',
      '1 min',
      '3 min 5 s',
      '2 h 10 min',
      '1 d',
      '4 d 3 h',
    ];
    expect(texts).toEqual(expected);
  });

  it('a moment is UTC, and one that no calendar has is its number', () => {
    expect(moment(0)).toBe('1970-01-01 00:00:00 UTC');
    expect(moment(1e18)).toBe('1000000000000000000');
  });
});
