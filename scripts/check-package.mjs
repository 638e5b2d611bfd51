/**
 * `npm run check:package`: what is published, tried as those who install it will use it. Needs `npm run build` first and the
 * registry for the dependencies.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deadLinks, pagesIn } from './dead-links.mjs';
import { expectDemo, runGuides, typeCheckGuides } from './package-guides.mjs';
import { readersPath } from './package-path.mjs';
import { serveTarball } from './package-registry.mjs';
import { execute, root, runSteps } from './steps.mjs';

/** The most that may be packed. Who needs more says why, here and in CONTRIBUTING.md. */
// 2,300 KiB until losses, rl, serve, ai-sdk and the examples, which pages link to, came in: they are 450 KiB packed.
// 2,900 KiB until evals, adapters, conformance, OpenTelemetry and the picture of the dashboard came in.
// 3,600 KiB with source maps. The bundle for Node needs none and is smaller than they were.
const BUDGET = { packedKiB: 2800, unpackedKiB: 7000, files: 1750 };
/** What `import { ModelInput }` may bring along, unminified and with its dependencies. */
const SMALL_IMPORT_KIB = 150;
/** What `import 'tinker-rx'` may load in Node before the first request: a module that belongs later shows here. */
const AT_ONCE = { files: 5, kib: 450 };

const MUST_HAVE = [
  'LICENSE',
  'README.md',
  'CHANGELOG.md',
  'dist/index.js',
  'dist/index.d.ts',
  'dist/dashboard/page.html',
  'dist/node/cli.js',
  'dist/node/THIRD-PARTY.txt',
  'assets/questions.jsonl',
  'assets/tinker-rx-tiny.safetensors',
  'assets/tinker-rx-small.safetensors',
];

const json = (path) => JSON.parse(readFileSync(path, 'utf8'));
const manifest = json(join(root, 'package.json'));
/** What can be imported: not the manifest, and not the data of the examples. */
const ENTRIES = Object.keys(manifest.exports).filter((path) => !/\.json$|\*/.test(path));
const INSTALL = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--no-package-lock'];

/** A file of an installed package. Looked up late: these modules are loaded before anything is installed. */
const beside = (url, path) => fileURLToPath(new URL(path, url));

/** What Node loads together with a file of the bundle: its files, how large they are, and the packages that they import. */
function loadedAtOnce(entry) {
  const files = new Map();
  const packages = new Set();
  const visit = (path) => {
    if (files.has(path)) return;
    const code = readFileSync(path, 'utf8');
    files.set(path, code.length);
    const imported = code.matchAll(
      /^(?:import|export) (?:.* from )?"([^"]+)";$|createRequire\(import\.meta\.url\)\("([^"]+)"\)/gm,
    );
    for (const [, from, required] of imported) {
      if (from?.startsWith('.')) visit(join(path, '..', from));
      else if (!from?.startsWith('node:')) packages.add(from ?? required);
    }
  };
  visit(entry);
  return {
    files: files.size,
    kib: [...files.values()].reduce((sum, size) => sum + size, 0) / 1024,
    packages: [...packages],
  };
}

/** Adds what is wrong up, so that one run tells all of it. */
function complain(problems) {
  if (problems.length > 0) throw new Error(problems.join('\n'));
}

const CONSUMER_JS = `
import assert from 'node:assert/strict';
const globals = new Set(Object.getOwnPropertyNames(globalThis));
const listeners = process.eventNames().length;

const { default: manifest } = await import('tinker-rx/package.json', { with: { type: 'json' } });
assert.equal(manifest.name, 'tinker-rx');
const entries = new Map();
for (const path of ${JSON.stringify(ENTRIES)}) {
  const name = path.replace(/^\\./, 'tinker-rx');
  assert.match(import.meta.resolve(name), /\\/dist\\/node\\/\\w/, path + ' is not of the bundle for Node');
  const entry = await import(name);
  entries.set(path, entry);
  const names = Object.keys(entry);
  assert.ok(names.length > 0, path + ' exports nothing');
  const { module } = manifest.exports[path];
  const asModules = await import(new URL(module, new URL('node_modules/tinker-rx/', import.meta.url)).href);
  assert.deepEqual(names, Object.keys(asModules), path + ' exports other names in Node than in a bundler');
  console.log(path, names.length, 'names');
}

// Whatever a program imports, each class exists once, and RxJS is the one that the program has.
const { Observable } = await import('rxjs');
const { ModelInput, TinkerError } = entries.get('.');
const { ByteTokenizer, getRenderer } = entries.get('./chat');
const prompt = getRenderer('tinker_rx_bytes', new ByteTokenizer()).buildGenerationPrompt([{ role: 'user', content: 'hi' }]);
assert.equal(prompt.constructor, ModelInput);
assert.ok(entries.get('./sources').fromIterable([1]) instanceof Observable);
let errors = 0;
for (const [path, entry] of entries) {
  for (const [name, value] of Object.entries(entry)) {
    if (typeof value !== 'function' || !/^class\\b/.test(String(value))) continue;
    const parents = [];
    for (let parent = value; typeof parent === 'function'; parent = Object.getPrototypeOf(parent)) parents.push(parent);
    const error = parents.find((parent) => parent.name === 'TinkerError');
    if (error === undefined) continue;
    assert.equal(error, TinkerError, name + ' of ' + path + ' is another TinkerError');
    errors++;
  }
}
assert.ok(errors > 20, 'only ' + errors + ' errors are exported');
await assert.rejects(import('tinker-rx/dist/index.js'), { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED' });

// What is imported and not used leaves no trace: no global, no listener, no timer, no socket.
assert.deepEqual(Object.getOwnPropertyNames(globalThis).filter((name) => !globals.has(name)), []);
assert.equal(process.eventNames().length, listeners);
const held = () => process.getActiveResourcesInfo().filter((kind) => !/^(TTY|Pipe)Wrap$|Req/.test(kind));
for (let turn = 0; turn < 100 && held().length > 0; turn++) await new Promise((resolve) => setImmediate(resolve));
assert.deepEqual(held(), []);

const { ServiceClient } = await import('tinker-rx');
const { VirtualClock, fakeTransport } = await import('tinker-rx/testing');
const clock = new VirtualClock();
const service = new ServiceClient(fakeTransport({ scheduler: clock, workMs: 10_000 }).clientOptions);
clock.resolve(clock.resolve(service.createLoraTrainingClient({ baseModel: 'any' })).optimStep());
assert.equal(clock.now(), 20_000);
console.log('a step under the virtual clock');
`;

const CONSUMER_TS = `
import { lastValueFrom, of, type Observable } from 'rxjs';
import { ModelInput, RestClient, ServiceClient, TinkerError, type Datum, type TinkerEvent } from 'tinker-rx';
import { ByteTokenizer, getRenderer, type Renderer } from 'tinker-rx/chat';
import { serveDashboard, type Dashboard } from 'tinker-rx/dashboard';
import { LocalTinker } from 'tinker-rx/local';
import * as losses from 'tinker-rx/losses';
import * as rl from 'tinker-rx/rl';
import { batch, linear, sampleFrom, toDatums, train, type Step } from 'tinker-rx/operators';
import { metricsLog, progressBar, toFuture } from 'tinker-rx/sinks';
import { fromConversations, fromJsonl } from 'tinker-rx/sources';
import { VirtualClock, fakeTransport } from 'tinker-rx/testing';

export async function run(): Promise<number> {
  const local = await LocalTinker.start({ clockMs: 100 });
  const service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey });
  const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 8 });
  const renderer: Renderer = getRenderer('tinker_rx_bytes', new ByteTokenizer());
  const events: Observable<TinkerEvent> = service.events$;
  const dashboard: Dashboard = await serveDashboard({ events$: events });
  const steps: Observable<Step> = fromConversations('chats.jsonl').pipe(
    toDatums(renderer),
    batch({ size: 2 }),
    train(trainer, { loss: 'cross_entropy', adam: { learningRate: linear(1e-4, { steps: 10 }) } }),
    metricsLog('run'),
    progressBar({ total: 10 }),
    dashboard.showSteps(),
  );
  const sampler = await trainer.saveWeightsAndGetSamplingClient();
  const sampled = of(ModelInput.fromInts([1])).pipe(sampleFrom(sampler, { samplingParams: { maxTokens: 3 } }));
  const tokens: Int32Array = (await lastValueFrom(sampled)).response.sequences[0]!.tokens;
  const rows: Observable<{ a: number }> = fromJsonl<{ a: number }>('rows.jsonl');
  const datum: Datum = { modelInput: ModelInput.fromInts(tokens), lossFnInputs: {} };
  const clock = new VirtualClock();
  const fake = new ServiceClient(fakeTransport({ scheduler: clock }).clientOptions);
  const error: TinkerError | undefined = undefined;
  await toFuture(steps);
  await new RestClient().listUserCheckpoints();
  await fake.close();
  void [rows, datum, error, losses, rl];
  // @ts-expect-error A types' error: what is exported is not \`any\`.
  const wrong: string = datum.modelInput;
  // @ts-expect-error Nor are arrays of numbers.
  const neither: string = datum.modelInput.toInts();
  void neither;
  // @ts-expect-error There is no such loss.
  train(trainer, { loss: 7 });
  return wrong.length;
}
`;

const BROWSER_TS = `
import { foldDashboard, fromDashboard } from 'tinker-rx/dashboard';
const url: string = location.href;
export const shown = fromDashboard(url).pipe(foldDashboard());
`;

/** The oldest TypeScript that understands the types, as the README says. Before 5.7 typed arrays were not generic. */
const OLDEST_TYPESCRIPT = '5.7';

const TYPESCRIPT_7 = join(root, 'node_modules/typescript-7');

const STRICT = {
  target: 'ES2022',
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
  noEmit: true,
};

/** Steps on one tarball, in one project; the first two make them. */
export function packageSteps() {
  const folder = mkdtempSync(join(tmpdir(), 'tinker-rx-package-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const project = join(folder, 'project');
  let packed;
  const tarball = () => {
    if (packed === undefined) throw new Error('there is no tarball to try');
    return join(folder, packed.filename);
  };
  let served;
  /** The environment in which npm finds the tarball under the package's name. */
  const registry = () => (served ??= serveTarball(tarball(), manifest, packed.integrity));
  const npm = async (args, cwd) => execute('npm', args, { cwd, env: await registry() });
  const installed = () => {
    const path = join(project, 'node_modules/tinker-rx');
    if (!existsSync(join(path, 'package.json'))) throw new Error('the tarball is not installed');
    return path;
  };

  const typeCheck = async (name, source, compilerOptions, typescript = join(root, 'node_modules/typescript')) => {
    installed();
    const place = join(project, name);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'consumer.ts'), source);
    writeFileSync(
      join(place, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: { ...STRICT, ...compilerOptions }, files: ['consumer.ts'] }),
    );
    await execute(process.execPath, [join(typescript, 'bin/tsc'), '-p', place]);
  };

  const bundle = async (source) => {
    const { rolldown } = await import('rolldown');
    const input = join(project, 'bundle.mjs');
    writeFileSync(input, source);
    const made = await rolldown({ input, cwd: project, platform: 'node', logLevel: 'silent' });
    const { output } = await made.generate({ format: 'esm' });
    await made.close();
    const modules = Object.entries(output[0].modules).filter(([, { renderedLength }]) => renderedLength > 0);
    return {
      code: output[0].code,
      chunks: output.length,
      modules: modules.map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 13)),
    };
  };

  return [
    {
      name: 'package: npm pack',
      run: async () => {
        [packed] = JSON.parse(
          await execute('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]),
        );
        const paths = new Set(packed.files.map(({ path }) => path));
        const stray = [...paths].filter(
          (path) =>
            !/^(dist\/|assets\/|examples\/|docs\/[\w-]+\.md$|docs\/marbles\/\w+\.svg$|docs\/images\/[\w-]+\.png$|test\/parity\/skyrl\.md$)/.test(
              path,
            ) && !/^(package\.json|[A-Z]+(\.md)?)$/.test(path),
        );
        // What an earlier build left behind would be published with the rest.
        const stale = [...paths].filter(
          (path) =>
            /^dist\/(?!node\/).*\.(js|d\.ts)$/.test(path) &&
            !existsSync(join(root, path.replace('dist/', 'src/').replace(/(\.d)?\.[jt]s$/, '.ts'))),
        );
        complain([
          ...MUST_HAVE.filter((path) => !paths.has(path)).map((path) => `${path} is not in it: npm run build?`),
          ...stray.map((path) => `${path} is in it, and nobody needs it`),
          ...stale.map((path) => `${path} has no source: remove dist and build again`),
        ]);
        return packed.filename;
      },
    },
    {
      name: 'package: size budget',
      run: async () => {
        tarball();
        const { size, unpackedSize, entryCount } = packed;
        const measured = [
          ['KiB packed', size / 1024, BUDGET.packedKiB],
          ['KiB unpacked', unpackedSize / 1024, BUDGET.unpackedKiB],
          ['files', entryCount, BUDGET.files],
        ];
        const told = measured.map(([unit, value, most]) => `${Math.ceil(value)} ${unit} of ${most}`);
        complain(
          measured
            .filter(([, value, most]) => value > most)
            .map(([unit, value, most]) => `${Math.ceil(value)} ${unit}, over the budget of ${most}`),
        );
        return told.join(', ');
      },
    },
    {
      name: 'package: publint',
      run: () =>
        execute(process.execPath, [beside(import.meta.resolve('publint'), 'cli.js'), 'run', tarball(), '--strict']),
    },
    {
      name: 'package: are the types wrong',
      run: async () => {
        const cli = beside(import.meta.resolve('@arethetypeswrong/cli/package.json'), 'dist/index.js');
        await execute(process.execPath, [cli, tarball(), '--profile', 'esm-only']);
      },
    },
    {
      name: 'package: installs into an empty project',
      run: async () => {
        mkdirSync(project, { recursive: true });
        writeFileSync(
          join(project, 'package.json'),
          JSON.stringify({ name: 'consumer', private: true, type: 'module' }),
        );
        const { devDependencies, peerDependencies } = manifest;
        // One entry is a sink for OpenTelemetry, whose users have its API.
        const beside = ['rxjs', '@opentelemetry/api'].map((name) => `${name}@${peerDependencies[name]}`);
        beside.push(`@types/node@${devDependencies['@types/node']}`);
        await npm([...INSTALL, manifest.name, ...beside], project);
        installed();
        return `${readdirSync(join(project, 'node_modules'))
          .filter((name) => !name.startsWith('.'))
          .join(' ')}`;
      },
    },
    {
      name: "package: uses the project's RxJS, and brings one where there is none",
      run: async () => {
        const { dependencies, peerDependencies } = manifest;
        if ('rxjs' in dependencies) throw new Error('rxjs is a dependency: two copies could meet');
        const oldest = peerDependencies.rxjs.replace('^', '');
        // npm decides what goes where before it unpacks anything, and writes that down.
        const tryIn = async (name, rxjs) => {
          const place = join(folder, name);
          mkdirSync(place, { recursive: true });
          writeFileSync(join(place, 'package.json'), JSON.stringify({ name, private: true, type: 'module' }));
          await npm(['install', '--package-lock-only', manifest.name, ...rxjs], place);
          const { packages } = json(join(place, 'package-lock.json'));
          if (!(`node_modules/${manifest.name}` in packages)) throw new Error(`${name}: the tarball is not installed`);
          const copies = Object.keys(packages).filter((path) => /(^|\/)node_modules\/rxjs$/.test(path));
          if (copies.length !== 1) throw new Error(`${name}: ${copies.length} copies of rxjs: ${copies.join(', ')}`);
        };
        await Promise.all([tryIn('with-rxjs', [`rxjs@${oldest}`]), tryIn('without-rxjs', [])]);
      },
    },
    {
      name: 'package: every entry imports as ESM and leaves no trace',
      run: async () => {
        installed();
        writeFileSync(join(project, 'consumer.mjs'), CONSUMER_JS);
        return execute(process.execPath, ['--disable-warning=ExperimentalWarning', 'consumer.mjs'], { cwd: project });
      },
    },
    {
      name: 'package: what is not needed at once is loaded later',
      run: async () => {
        const inNode = (name) => loadedAtOnce(join(installed(), 'dist/node', `${name}.js`));
        const { files, kib, packages } = inNode('index');
        const command = inNode('cli');
        complain([
          ...packages.filter((name) => name !== 'rxjs').map((name) => `import 'tinker-rx' loads ${name}`),
          ...(files > AT_ONCE.files ? [`import 'tinker-rx' loads ${files} files, over ${AT_ONCE.files}`] : []),
          ...(kib > AT_ONCE.kib ? [`import 'tinker-rx' loads ${Math.ceil(kib)} KiB, over ${AT_ONCE.kib}`] : []),
          ...command.packages.map((name) => `the command loads ${name} whatever it is asked to do`),
        ]);
        return `import 'tinker-rx': ${files} files, ${Math.ceil(kib)} KiB; the command: ${command.files} files, ${Math.ceil(command.kib)} KiB`;
      },
    },
    {
      name: 'package: types under nodenext',
      run: () =>
        typeCheck('nodenext', CONSUMER_TS, { module: 'NodeNext', moduleResolution: 'NodeNext', types: ['node'] }),
    },
    {
      name: 'package: types under bundler, with TypeScript 7',
      run: () =>
        typeCheck(
          'bundler',
          CONSUMER_TS,
          { module: 'ESNext', moduleResolution: 'Bundler', types: ['node'] },
          TYPESCRIPT_7,
        ),
    },
    {
      name: `package: types under TypeScript ${OLDEST_TYPESCRIPT}, the oldest that the README promises`,
      run: async () => {
        if (!readFileSync(join(root, 'README.md'), 'utf8').includes(`TypeScript ≥ ${OLDEST_TYPESCRIPT}`))
          throw new Error(`README.md does not say TypeScript ≥ ${OLDEST_TYPESCRIPT}`);
        const place = join(folder, 'oldest-typescript');
        mkdirSync(place, { recursive: true });
        writeFileSync(join(place, 'package.json'), '{ "private": true }\n');
        await execute('npm', [...INSTALL, `typescript@~${OLDEST_TYPESCRIPT}.0`], { cwd: place });
        const typescript = join(place, 'node_modules/typescript');
        const options = { module: 'NodeNext', moduleResolution: 'NodeNext', types: ['node'] };
        await typeCheck('oldest', CONSUMER_TS, options, typescript);
        return json(join(typescript, 'package.json')).version;
      },
    },
    {
      name: 'package: types of the dashboard in a browser, without Node',
      run: () =>
        typeCheck(
          'browser',
          BROWSER_TS,
          {
            module: 'ESNext',
            moduleResolution: 'Bundler',
            customConditions: ['browser'],
            lib: ['ES2022', 'DOM', 'DOM.Iterable'],
            types: [],
          },
          TYPESCRIPT_7,
        ),
    },
    {
      name: 'package: what is not used is not bundled',
      run: async () => {
        installed();
        for (const path of ENTRIES) {
          const { code } = await bundle(`import '${path.replace('.', 'tinker-rx')}';`);
          if (code.replace(/\/\/#.*|export \{ *\};?/g, '').trim() !== '')
            throw new Error(`import '${path}' alone is not empty:\n${code.slice(0, 2000)}`);
        }
        const { code, modules } = await bundle(
          `import { ModelInput } from 'tinker-rx';\nconsole.log(ModelInput.fromInts([1]).length);`,
        );
        const rooms = new Set(
          modules.filter((path) => path.startsWith('tinker-rx/')).map((path) => path.split('/')[2]),
        );
        const kib = code.length / 1024;
        complain([
          ...[...rooms].filter((room) => room !== 'wire').map((room) => `ModelInput alone brings ${room} along`),
          ...(kib > SMALL_IMPORT_KIB ? [`ModelInput alone is ${Math.ceil(kib)} KiB, over ${SMALL_IMPORT_KIB}`] : []),
        ]);
        return `ModelInput alone: ${modules.length} modules, ${Math.ceil(kib)} KiB`;
      },
    },
    {
      name: 'package: no link of its pages is dead',
      run: async () => {
        const dead = deadLinks(installed());
        complain(dead);
        return `${pagesIn(installed()).length} pages`;
      },
    },
    {
      name: 'package: every block of TypeScript in its pages compiles once it is installed',
      run: () => typeCheckGuides(project, installed()),
    },
    {
      name: 'package: every program of its pages runs once it is installed, and prints what is shown',
      run: () => runGuides(project, installed()),
    },
    {
      name: 'package: from the README to a trained model in four commands',
      run: async () => readersPath(join(folder, 'reader'), await registry()),
    },
    {
      name: 'package: npx tinker-rx version',
      run: async () => {
        installed();
        const told = (await execute('npx', ['--no-install', 'tinker-rx', 'version'], { cwd: project })).trim();
        if (told !== `tinker-rx ${manifest.version}`) throw new Error(`it says ${JSON.stringify(told)}`);
        return told;
      },
    },
    {
      name: 'package: npx tinker-rx demo, which prints what the README shows',
      run: async () => {
        installed();
        const told = await execute('npx', ['--no-install', 'tinker-rx', 'demo'], { cwd: project });
        if (!/Before training:[\s\S]*After training:[\s\S]*"Paris"/.test(told))
          throw new Error(`it learned nothing:\n${told}`);
        await expectDemo(told, installed());
        return told;
      },
    },
    {
      name: 'package: examples/testing on the tarball',
      run: async () => {
        const place = join(folder, 'testing');
        cpSync(join(root, 'examples/testing'), place, {
          recursive: true,
          filter: (path) => !path.endsWith('node_modules'),
        });
        const example = json(join(place, 'package.json'));
        example.dependencies[manifest.name] = manifest.version;
        writeFileSync(join(place, 'package.json'), JSON.stringify(example));
        await npm(INSTALL, place);
        await execute('npm', ['run', 'typecheck'], { cwd: place });
        return execute('npm', ['test'], { cwd: place });
      },
    },
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runSteps(packageSteps());
