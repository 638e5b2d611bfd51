import { readFileSync } from 'node:fs';

/** The version of this package, from its own package.json; `unknown` if a bundler has left that behind. */
export function packageVersion(): string {
  try {
    const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
    const { name, version } = JSON.parse(text) as { readonly name?: string; readonly version?: string };
    return name === 'tinker-rx' ? (version ?? 'unknown') : 'unknown';
  } catch {
    return 'unknown';
  }
}
