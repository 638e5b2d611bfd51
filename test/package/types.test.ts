import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { pagesIn } from '../unit/docs/deadLinks.js';
import { snippetsOf } from '../unit/docs/snippets.js';
import { execute, root } from './execute.js';
import { folder, install, INSTALL, readJson } from './installed.js';

const CONSUMER = `
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

const BROWSER = `
import { foldDashboard, fromDashboard } from 'tinker-rx/dashboard';
const url: string = location.href;
export const shown = fromDashboard(url).pipe(foldDashboard());
`;

const NODENEXT = { module: 'NodeNext', moduleResolution: 'NodeNext', types: ['node'] };
const BUNDLER = { module: 'ESNext', moduleResolution: 'Bundler', types: ['node'] };
const TYPESCRIPT = join(root, 'node_modules/typescript');
const TYPESCRIPT_7 = join(root, 'node_modules/typescript-7');
/** The oldest TypeScript that understands the types. Before 5.7 typed arrays were not generic. */
const OLDEST = '5.7';

const STRICT = {
  target: 'ES2022',
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
};

/** Compiles files in a folder of the project. @throws Error with what the compiler found */
async function compile(
  name: string,
  sources: readonly string[],
  compilerOptions: object,
  typescript = TYPESCRIPT,
): Promise<void> {
  const place = join((await install()).project, name);
  mkdirSync(place, { recursive: true });
  const files = sources.map((_, index) => `${index}.ts`);
  sources.forEach((source, index) => writeFileSync(join(place, files[index]!), source));
  writeFileSync(
    join(place, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: { ...STRICT, ...compilerOptions }, files }),
  );
  await execute(process.execPath, [join(typescript, 'bin/tsc'), '-p', place]);
}

it('the types are right under nodenext', async () => {
  await expect(compile('nodenext', [CONSUMER], NODENEXT)).resolves.toBeUndefined();
});

it('the types are right under bundler, with TypeScript 7', async () => {
  await expect(compile('bundler', [CONSUMER], BUNDLER, TYPESCRIPT_7)).resolves.toBeUndefined();
});

it(`the types are right under TypeScript ${OLDEST}, the oldest that the README promises`, async () => {
  expect(readFileSync(join(root, 'README.md'), 'utf8')).toContain(`TypeScript ≥ ${OLDEST}`);
  const place = folder('oldest-typescript');
  writeFileSync(join(place, 'package.json'), '{ "private": true }\n');
  await execute('npm', [...INSTALL, `typescript@~${OLDEST}.0`], { cwd: place });
  const typescript = join(place, 'node_modules/typescript');
  expect(readJson<{ version: string }>(join(typescript, 'package.json')).version).toMatch(/^5\.7\./);
  await expect(compile('oldest', [CONSUMER], NODENEXT, typescript)).resolves.toBeUndefined();
});

it('the types of the dashboard are right in a browser, without Node', async () => {
  const inBrowser = { customConditions: ['browser'], lib: ['ES2022', 'DOM', 'DOM.Iterable'], types: [] };
  await expect(compile('browser', [BROWSER], { ...BUNDLER, ...inBrowser }, TYPESCRIPT_7)).resolves.toBeUndefined();
});

/** Packages that a page tells to install beside this one. They are here already, so their types are linked from here. */
const BESIDE = [
  ...['@ai-sdk/openai-compatible', '@ai-sdk/provider', '@modelcontextprotocol/sdk', 'ai'],
  ...['openai', 'rxjs-marbles', 'vitest'],
];

it('every block of TypeScript in its pages compiles where it is installed', async () => {
  const { project, installed } = await install();
  const snippets = pagesIn(installed)
    .flatMap((page) => snippetsOf(page, readFileSync(join(installed, page), 'utf8')))
    // How the embedded engine works inside is told with the sources.
    .filter(({ source }) => !source.includes("from '../src/"));
  expect(snippets.length).toBeGreaterThan(100);
  for (const name of BESIDE) {
    const link = join(project, 'guides/node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), link, 'dir');
  }
  const options = { ...NODENEXT, lib: ['ES2023', 'ESNext.Disposable'], skipLibCheck: true };
  const sources = snippets.map(({ source }) => `${source}\nexport {};\n`);
  await compile('guides', sources, options, TYPESCRIPT_7).catch(({ message }: Error) => {
    const inPage = (_: string, index: number, line: number) =>
      `${snippets[index]!.file}:${snippets[index]!.lines[line - 1] ?? snippets[index]!.line}: `;
    throw new Error(message.replace(/\S*\b(\d+)\.ts\((\d+),\d+\): /g, inPage as never));
  });
});
