import { describe, expect, it } from 'vitest';
import { resolveBaseUrl } from '../../../src/transport/baseUrl.js';
import { proxiesOf } from '../../../src/transport/proxies.js';
import { socketTransport } from '../../../src/transport/socketTransport.js';

describe('the proxies of the environment', () => {
  it('are none where no variable is set', () => {
    expect(proxiesOf({})).toBeUndefined();
    expect(proxiesOf({ HTTP_PROXY: '', NO_PROXY: '*' })).toBeUndefined();
  });

  it('are taken from lower case before upper case', () => {
    expect(
      proxiesOf({ http_proxy: 'http://a:1', HTTP_PROXY: 'http://b:1', HTTPS_PROXY: 'http://c:1', no_proxy: 'd' }),
    ).toEqual({ httpProxy: 'http://a:1', httpsProxy: 'http://c:1', noProxy: 'd' });
  });

  it.each(['http://user:SECRET@host:port', 'user:SECRET@host', 'http://user:SECRET#1@host:99999', 'ftp://u:SECRET@h'])(
    'showed the password of a malformed one: %s is refused without it',
    (HTTPS_PROXY) => {
      const make = () =>
        socketTransport({ baseUrl: resolveBaseUrl('https://a.test', undefined), environment: { HTTPS_PROXY } });
      expect(make).toThrow('HTTPS_PROXY is not the URL of a proxy: expected something like http://proxy.example:8080');
      try {
        make();
      } catch (error) {
        expect(String((error as Error).stack) + JSON.stringify(error)).not.toContain('SECRET');
        expect((error as Error).cause).toBeUndefined();
      }
    },
  );
});
