import { failureOf } from '../http.js';
import { wrong, type Finding } from './Check.js';
import { isRecord } from '../../support/isRecord.js';
import { parseJson } from '../../support/parseJson.js';

/** What is wrong with an answer to the question for health; undefined if it is a Tinker service's. */
export function healthProblem(status: number, text: string, href: string): Finding | undefined {
  if (status >= 400 && /\/api(\/v1)?$/.test(href))
    return wrong('Health', `HTTP ${status}`, 'Leave /api/v1 out of the address: it is added to it.');
  // Some services tell nothing at all without a key.
  if (status === 401) return undefined;
  if (status >= 500)
    return wrong('Health', `HTTP ${status}`, 'A server answers there, but it is failing: try again later.');
  if (status >= 400)
    return wrong(
      'Health',
      `HTTP ${status}`,
      'A server answers there, but it is not a Tinker service: check the address.',
    );
  return isRecord(parseJson(text))
    ? undefined
    : wrong(
        'Health',
        'answers, but not as a Tinker service does',
        'Check the address: a web page may be there instead.',
      );
}

/** Why nobody answers, and what to do about it. */
export function unreachable(error: unknown, href: string): Finding {
  const { name, cause } = error as { readonly name?: string; readonly cause?: { readonly code?: string } };
  if (name === 'TimeoutError')
    return wrong('Health', 'no answer within 10 s', 'Check the network, a firewall, and the proxy variables.');
  return wrong('Health', failureOf(error), adviceOn(cause?.code ?? '', href));
}

function adviceOn(code: string, href: string): string {
  if (code === 'ECONNREFUSED' && isLocal(href))
    return 'Nothing is listening there: start the service with tinker-rx local, or unset TINKER_BASE_URL for the hosted one.';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return 'There is no host of this name: check the address, and that this machine has a network.';
  if (/CERT|SIGNED|ISSUER/.test(code))
    return 'The certificate is not trusted: give Node your authority with NODE_EXTRA_CA_CERTS.';
  return 'Check the address, the network and the proxy variables.';
}

export const isLocal = (href: string): boolean => /^https?:\/\/(127\.|localhost[:/]|localhost$|\[::1\])/.test(href);
