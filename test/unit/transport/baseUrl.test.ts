import { describe, expect, it } from 'vitest';
import { DEFAULT_BASE_URL, resolveBaseUrl } from '../../../src/transport/baseUrl.js';
import { ValidationError } from '../../../src/wire/tinkerError.js';

describe('the base URL', () => {
  it.each([
    ['http://host', 'http://host', ''],
    ['http://host/', 'http://host', ''],
    ['http://host:8000', 'http://host:8000', ''],
    ['http://host:80/', 'http://host', ''],
    ['https://host:443', 'https://host', ''],
    ['https://HOST/Services/Prod/', 'https://host', '/Services/Prod'],
    ['https://host/a//', 'https://host', '/a'],
    ['http://[::1]:9/x', 'http://[::1]:9', '/x'],
  ])('%s has the origin %s and the prefix %j', (text, origin, prefix) => {
    expect(resolveBaseUrl(text, undefined)).toStrictEqual({ href: origin + prefix, origin, prefix });
  });

  it('is the argument, then the environment, then the hosted service; empty counts as unset', () => {
    expect(resolveBaseUrl('http://a', 'http://b').href).toBe('http://a');
    expect(resolveBaseUrl('', 'http://b').href).toBe('http://b');
    expect(resolveBaseUrl(undefined, '').href).toBe(DEFAULT_BASE_URL);
    expect(resolveBaseUrl(undefined, undefined).prefix).toBe('/services/tinker-prod');
  });

  it.each([
    ['host:8000', 'the base URL must start with http:// or https://, got host://'],
    ['not a url', 'the base URL is not a URL: "not a url"'],
    ['//host', 'the base URL is not a URL: "//host"'],
    ['ftp://host', 'the base URL must start with http:// or https://, got ftp://'],
    ['http://user:secret@host', 'the base URL must not carry a user name or password'],
    ['http://host?key=secret', 'the base URL must not carry a query or fragment'],
    ['http://host#x', 'the base URL must not carry a query or fragment'],
  ])('%s is refused', (text, said) => {
    expect(() => resolveBaseUrl(text, undefined)).toThrow(new ValidationError(said));
  });

  it('with a password in it is not shown, also when it is no URL', () => {
    expect(() => resolveBaseUrl('http://user:secret@', undefined)).not.toThrow(/secret/);
  });
});
