// Runs tests on another release of Node, which npm brings: node scripts/on-node.mjs <release> [arguments of vitest]
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';

const [release = '', ...args] = process.argv.slice(2);
if (!/^\d+$/.test(release)) throw new RangeError(`a release of Node, such as 24, got "${release}"`);
const root = fileURLToPath(new URL('..', import.meta.url));
const folder = `${root}node_modules/.cache/node-${release}`;
mkdirSync(folder, { recursive: true });
writeFileSync(`${folder}/package.json`, JSON.stringify({ private: true, allowScripts: { node: true } }));
execFileSync('npm', ['install', '--no-audit', '--no-fund', `node@${release}`], { cwd: folder, stdio: 'inherit' });

// Programs that tests start by the name `node` are the same release.
const programs = `${folder}/node_modules/.bin`;
const env = { ...process.env, PATH: `${programs}${delimiter}${process.env.PATH}` };
const tests = [`${root}node_modules/vitest/vitest.mjs`, 'run', '--project', 'node', ...args];
try {
  execFileSync(`${programs}/node`, tests, { cwd: root, env, stdio: 'inherit' });
} catch ({ status }) {
  process.exit(status ?? 1);
}
