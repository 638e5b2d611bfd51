import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export interface Page {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Beside this module in the package; if the sources run as they are, in what was built of them. */
const PLACES = ['../', '../../../dist/dashboard/'];

/**
 * A page, one file with everything in it, and headers that let it run its own script and talk to its own server and
 * nothing else.
 *
 * @throws Error when the package was not built.
 */
export function readPage(name: 'page.html' | 'compare.html' = 'page.html'): Page {
  const path = PLACES.map((place) => fileURLToPath(new URL(`${place}${name}`, import.meta.url))).find((each) =>
    existsSync(each),
  );
  if (path === undefined) throw new Error('the page of the dashboard is missing: run `npm run build` first');
  const html = readFileSync(path, 'utf8');
  const hashes = (tag: 'script' | 'style') =>
    [...html.matchAll(new RegExp(`<${tag}[^>]*>([\\s\\S]*?)</${tag}>`, 'g'))]
      .map(([, text]) => `'sha256-${createHash('sha256').update(text!).digest('base64')}'`)
      .join(' ');
  return {
    html,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy': [
        "default-src 'none'",
        `script-src ${hashes('script')}`,
        `style-src ${hashes('style')}`,
        "connect-src 'self'",
        'img-src data:',
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
      ].join('; '),
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    },
  };
}
