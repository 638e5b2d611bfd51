import { describe, expect, it } from 'vitest';
import { allowsName, bearerOf, hostName, isLoopback, sameSecret } from '../../../src/support/http/access.js';

describe('access to a server on this machine', () => {
  it.each(['localhost', '127.0.0.1', '127.1.2.3', '::1', '[::1]'])('%s is reached from this machine only', (host) => {
    expect(isLoopback(host)).toBe(true);
  });

  it.each(['0.0.0.0', '127.evil.example', '127.0.0.1.evil.example', 'localhost.evil.example', '[::]', '', '10.0.0.1'])(
    '%s is not',
    (host) => {
      expect(isLoopback(host)).toBe(false);
    },
  );

  it('reads the name of a Host header without its port', () => {
    expect(['LocalHost:8080', '[::1]:80', 'a.example'].map(hostName)).toStrictEqual([
      'localhost',
      '[::1]',
      'a.example',
    ]);
  });

  it('refuses the name of another site, wherever it listens', () => {
    expect(allowsName('evil.example', '127.0.0.1')).toBe(false);
    expect(allowsName('evil.example', '0.0.0.0')).toBe(false);
    expect(allowsName('', '127.0.0.1')).toBe(false);
  });

  it('takes other addresses only where it listens on more than loopback', () => {
    expect(allowsName('10.0.0.7', '127.0.0.1')).toBe(false);
    expect(allowsName('10.0.0.7', '0.0.0.0')).toBe(true);
    expect(allowsName('[fe80::1]', '::')).toBe(true);
    expect(allowsName('[not an address', '::')).toBe(false);
  });

  it('takes the names it was told', () => {
    expect(allowsName('box.example', '127.0.0.1', ['Box.Example'])).toBe(true);
  });

  it('reads a bearer token', () => {
    expect(['Bearer abc', 'bearer  abc', 'Basic abc', undefined].map(bearerOf)).toStrictEqual([
      ...['abc', 'abc', undefined, undefined],
    ]);
  });

  it('compares secrets of any length', () => {
    expect(sameSecret('a', 'a')).toBe(true);
    expect(sameSecret('a', 'aa')).toBe(false);
    expect(sameSecret('', 'a')).toBe(false);
  });
});
