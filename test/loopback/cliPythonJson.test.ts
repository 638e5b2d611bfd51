/**
 * With `--format json` the commands that the Python command has too print the same shape: every key that is there, with
 * the same types. The fixture is made by test/unit/cli/python_json.py, which sets up the same run.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type Datum, ModelInput, ServiceClient, TensorData } from 'tinker-rx';
import { LocalTinker } from 'tinker-rx/local';
import { run } from '../unit/cli/terminal.js';

type Shape = Readonly<Record<string, readonly string[]>>;
const { commands } = JSON.parse(
  readFileSync(new URL('../unit/cli/fixtures/python-json.json', import.meta.url), 'utf8'),
) as { readonly commands: Readonly<Record<string, Shape>> };

let local: LocalTinker;
let folder: string;
let state: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-json-'));
  local = await LocalTinker.start({ flags: { pjwtAuthEnabled: true } });
  vi.stubEnv('TINKER_BASE_URL', local.url);
  vi.stubEnv('TINKER_API_KEY', local.apiKey);
  await using service = new ServiceClient();
  const trainer = await service.createLoraTrainingClient({
    baseModel: 'tinker-rx/tiny',
    rank: 4,
    userMetadata: { purpose: 'shapes' },
  });
  const datum: Datum = {
    modelInput: ModelInput.fromInts([1, 2, 3]),
    lossFnInputs: {
      target_tokens: TensorData.from([2, 3, 4], 'int64'),
      weights: TensorData.from([1, 1, 1], 'float32'),
    },
  };
  await trainer.forwardBackward([datum], 'cross_entropy');
  await trainer.optimStep({});
  ({ path: state } = await trainer.saveState('state', { ttlSeconds: 7200 }));
  await trainer.saveWeightsForSampler('sampler');
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await local.close();
  rmSync(folder, { recursive: true });
});

/** Objects whose keys are names of things, not of fields. */
const OPEN = ['user_metadata', 'sessions'];

/** Every path of a JSON value, with the types that stand there. */
function shapeOf(value: unknown, path = '$', found = new Map<string, Set<string>>()): Map<string, Set<string>> {
  const kind = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  found.set(path, (found.get(path) ?? new Set()).add(kind));
  if (Array.isArray(value)) for (const child of value as readonly unknown[]) shapeOf(child, `${path}[]`, found);
  else if (typeof value === 'object' && value !== null)
    for (const [key, child] of Object.entries(value))
      shapeOf(child, OPEN.includes(path.split('.').at(-1)!) ? `${path}.*` : `${path}.${key}`, found);
  return found;
}

const withoutMetadata = (shape: Shape): Shape =>
  Object.fromEntries(Object.entries(shape).filter(([path]) => !path.includes('user_metadata.')));

/** The arguments of a command of the fixture, beside its words. */
function argumentsOf(name: string): readonly string[] {
  const runId = state.split('/')[2]!;
  const session = runId.split(':')[0]!;
  const hour = (offset: number) => new Date((Math.floor(Date.now() / 3_600_000) + offset) * 3_600_000).toISOString();
  const known: Readonly<Record<string, readonly string[]>> = {
    'run info': [runId],
    'checkpoint list --run-id': ['--run-id', runId],
    'checkpoint info': [state],
    'checkpoint download': [state, '-o', folder],
    'session export-trace': [session, '-o', join(folder, 'trace')],
    'session export-trace --url-only': [session, '--url-only'],
    'billing usage': [hour(-1), hour(2)],
    'checkpoint delete': [state, '-y'],
  };
  return known[name] ?? [];
}

/** Checkpoints name their base model from 0.39 on; the recordings are of 0.36. */
const withoutNewer = (shape: Shape, older: Shape): Shape =>
  Object.fromEntries(Object.entries(shape).filter(([path]) => path in older || !path.endsWith('.base_model')));

it('has recordings', () => expect(Object.keys(commands).length).toBeGreaterThan(10));

it.each(Object.entries(commands))('%s', async (name, python) => {
  const words = name.split(' ').filter((word) => !word.startsWith('--'));
  const { code, stdout, stderr } = await run(['--format', 'json', ...words, ...argumentsOf(name)]);
  expect(code, stderr).toBe(0);
  const ours = Object.fromEntries([...shapeOf(JSON.parse(stdout))].map(([path, kinds]) => [path, [...kinds].sort()]));
  // Our download names itself in the metadata of its session, which Python's does not have there.
  expect(withoutNewer(withoutMetadata(ours), python)).toStrictEqual(withoutMetadata(python));
});
