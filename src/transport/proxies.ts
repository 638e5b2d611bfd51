import { ValidationError } from '../wire/tinkerError.js';

/** The proxies that the environment asks for, in undici's names. */
export interface Proxies {
  readonly httpProxy: string;
  readonly httpsProxy: string;
  readonly noProxy: string;
}

/**
 * The usual proxy variables, lower case first; undefined if none is set.
 *
 * @throws ValidationError when one is no URL. The message does not show it: proxies carry passwords.
 */
export function proxiesOf(environment: Readonly<Record<string, string | undefined>>): Proxies | undefined {
  const read = (name: string): string => environment[name.toLowerCase()] || environment[name] || '';
  const proxy = (name: string): string => {
    const text = read(name);
    if (text !== '' && !(URL.canParse(text) && /^(https?|socks5?):$/.test(new URL(text).protocol)))
      throw new ValidationError(`${name} is not the URL of a proxy: expected something like http://proxy.example:8080`);
    return text;
  };
  const [httpProxy, httpsProxy] = [proxy('HTTP_PROXY'), proxy('HTTPS_PROXY')];
  if (httpProxy === '' && httpsProxy === '') return undefined;
  return { httpProxy, httpsProxy, noProxy: read('NO_PROXY') };
}
