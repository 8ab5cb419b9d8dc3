import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { resolveStoreUrl, stateDirectory } from '../../src/cli/store-url.ts';
import { UsageError } from '../../src/cli/usage.ts';

describe('store url', () => {
  it('a relative file is told from the root on, everything else is left as it stands', () => {
    expect(resolveStoreUrl('sqlite:./a b?.db')).toBe(`sqlite:${resolve('a b?.db')}`);
    for (const url of [
      'sqlite:/a.db',
      'sqlite:///a.db',
      'sqlite:~/a.db',
      'sqlite:',
      'postgres://host/db',
      'gopher:x',
    ]) {
      expect(resolveStoreUrl(url)).toBe(url);
    }
  });

  it('a store in memory is refused: no other process would see its leases', () => {
    expect(() => resolveStoreUrl('memory:')).toThrow(UsageError);
  });

  it('leases are kept where the system wants the state of programs', () => {
    expect(stateDirectory('linux', {}, () => '/home/u')).toBe('/home/u/.local/state/lessor');
    expect(stateDirectory('linux', { XDG_STATE_HOME: '/state' }, () => '/home/u')).toBe('/state/lessor');
    expect(stateDirectory('linux', { XDG_STATE_HOME: 'state' }, () => '/home/u')).toBe('/home/u/.local/state/lessor');
    expect(stateDirectory('darwin', {}, () => '/Users/u')).toBe('/Users/u/Library/Application Support/lessor');
    expect(stateDirectory('win32', { LOCALAPPDATA: '/local' }, () => '/u')).toBe('/local/lessor');
  });
});
