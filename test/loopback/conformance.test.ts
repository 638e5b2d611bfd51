/** `tinker-rx doctor --conformance` against the embedded service, and plans checked against its profile. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ServiceClient } from 'tinker-rx';
import { checkUse, foresee, readProfile, type ServerProfile } from 'tinker-rx/conformance';
import { LocalTinker, type LocalTinkerOptions } from 'tinker-rx/local';
import { Prober } from '../../src/conformance/Prober.js';
import { FEATURES, runProbes } from '../../src/conformance/runProbes.js';
import { connect } from '../../src/client/connection/connect.js';
import { run } from '../unit/cli/terminal.js';

/** Defined in words only: the embedded service refuses them, and says so. */
const UNDEFINED = ['loss: stable_reinforce', 'optimizer: dimuon'];
const CONFORMANCE = new URL('../../docs/conformance.md', import.meta.url);
let folder: string;

const MARKS = { yes: '✓', differs: '!', no: '✗', unknown: '?' };

/** The table of the page: each feature, and the embedded service's mark. */
const tableOf = (page: string): string[][] =>
  page.split('\n').flatMap((line) => {
    const row = /^\| (\w+: [^|]+?) +\| (.) /.exec(line);
    return row === null ? [] : [row.slice(1)];
  });

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-profile-'));
  vi.stubEnv('NO_COLOR', '1');
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

async function probed(options: LocalTinkerOptions): Promise<ServerProfile> {
  const local = await LocalTinker.start(options);
  const { connection, sockets } = connect({ baseUrl: local.url, apiKey: local.apiKey, logLevel: 'silent' });
  const profile = await runProbes(new Prober(connection, 'tinker-rx/tiny', () => Date.now(), 1000), local.url);
  await sockets?.close();
  await local.close();
  return profile;
}

const featuresIn = ({ features }: ServerProfile, state: string): string[] =>
  Object.entries(features).flatMap(([name, feature]) => (feature.state === state ? [name] : []));

describe('doctor --conformance', () => {
  it('finds everything at the embedded service, but for what no text defines', async () => {
    const local = await LocalTinker.start({ flags: { customLossServerSide: true } });
    vi.stubEnv('TINKER_BASE_URL', local.url);
    vi.stubEnv('TINKER_API_KEY', local.apiKey);
    const file = join(folder, 'profile.json');
    const ran = await run(['doctor', '--conformance', '--profile', file]);
    await local.close();
    const profile = readProfile(JSON.parse(readFileSync(file, 'utf8')));
    expect(ran.code).toBe(0);
    expect(featuresIn(profile, 'no')).toStrictEqual(UNDEFINED);
    expect(featuresIn(profile, 'differs')).toStrictEqual([]);
    expect(featuresIn(profile, 'unknown')).toStrictEqual([]);
    expect(Object.keys(profile.features)).toStrictEqual(FEATURES);
    expect(ran.stdout).toContain('✓ loss: ppo\n');
    expect(ran.stdout).toContain(`${FEATURES.length - 2} as the protocol says, 0 in its own way, 2 missing.`);
    const rows = Object.entries(profile.features).map(([name, { state }]) => [name, MARKS[state]]);
    expect(tableOf(readFileSync(CONFORMANCE, 'utf8'))).toStrictEqual(rows);
  });

  it('finds out what a server that speaks JSON only lacks', async () => {
    const profile = await probed({ dialect: 'skyrl' });
    const missing = featuresIn(profile, 'no');
    for (const feature of [
      'wire: passes as protobuf',
      'loss: dro',
      'loss: custom, run by the server',
      'sampling: cancelling',
    ])
      expect(missing).toContain(feature);
    expect(featuresIn(profile, 'differs')).toContain('order: by number, whatever arrives first');
    expect(profile.features['loss: ppo']).toStrictEqual({ state: 'yes' });
  });
});

describe('a profile', () => {
  const feature = (state: 'no' | 'differs', note: string) => ({ state, note });
  const profile: ServerProfile = {
    version: 1,
    service: 'http://elsewhere',
    baseModel: 'tinker-rx/tiny',
    takenAt: '2026-11-16T00:00:00.000Z',
    features: {
      'loss: dro': feature('no', '422 loss_fn'),
      'loss: ppo': feature('differs', '1 instead of 2'),
      'optimizer: dimuon': feature('no', '400'),
      'sampling: top-k of the prompt': feature('no', 'ignored without a word'),
      'archives: exports with signed addresses': feature('no', '404'),
    },
  };

  it("says before the first step what will not work, also by the server's own list of models", async () => {
    const local = await LocalTinker.start();
    await using service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey });
    const use = { baseModel: 'tinker-rx/tiny', losses: ['ppo', 'dro', 'cispo'], longestInput: 10 ** 6 } as const;
    const told = await checkUse(service, use, profile);
    expect(told.map(({ feature: name, kind }) => [name, kind])).toStrictEqual([
      ['context', 'absent'],
      ['loss: ppo', 'differs'],
      ['loss: dro', 'absent'],
    ]);
    expect(told[2]?.text).toBe(
      'the service does not have "loss: dro": 422 loss_fn (profile of http://elsewhere, 2026-11-16)',
    );
    expect(foresee(use, { profile })).toStrictEqual(told.slice(1));
    expect((await checkUse(service, use)).map(({ feature: name }) => name)).toStrictEqual(['context']);
    const [none] = await checkUse(service, { baseModel: 'else/where' }, profile);
    expect(none?.text).toContain('the service has no model else/where; it has: tinker-rx/tiny');
    expect(await checkUse(service, { baseModel: 'tinker-rx/tiny', losses: ['cispo'] }, profile)).toStrictEqual([]);
    await expect(checkUse(service, { model: 'tinker-rx/tiny' } as never)).rejects.toThrow('model');
    await service.close();
    await local.close();
  });

  it('ends a command that trains with what it lists as missing, if TINKER_PROFILE names it', async () => {
    let passes = 0;
    const local = await LocalTinker.start({
      onRequest: ({ endpoint }) => void (passes += Number(endpoint === 'forward_backward')),
    });
    const [file, data] = [join(folder, 'lacking.json'), join(folder, 'chats.jsonl')];
    const lacking = { ...profile, features: { 'loss: cross_entropy': feature('no', '404') } };
    writeFileSync(file, JSON.stringify(lacking));
    writeFileSync(
      data,
      `${JSON.stringify({
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: 'b' },
        ],
      })}\n`,
    );
    vi.stubEnv('TINKER_BASE_URL', local.url);
    vi.stubEnv('TINKER_API_KEY', local.apiKey);
    vi.stubEnv('TINKER_PROFILE', file);
    const train = ['train', data, '-m', 'tinker-rx/tiny', '--steps', '1', '--log', join(folder, 'run')];
    const ran = await run(train);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('Error: the service does not have "loss: cross_entropy": 404');
    expect(passes).toBe(0);
    writeFileSync(
      file,
      JSON.stringify({ ...profile, features: { 'loss: cross_entropy': feature('differs', 'twice') } }),
    );
    const warned = await run(train);
    expect([warned.code, passes]).toStrictEqual([0, 1]);
    expect(warned.stderr).toContain('Warning: the service has in its own way "loss: cross_entropy": twice');
    vi.stubEnv('TINKER_PROFILE', join(folder, 'none.json'));
    expect((await run([...train.slice(0, -1), join(folder, 'other')])).stderr).toContain('TINKER_PROFILE: ');
    vi.stubEnv('TINKER_PROFILE', '');
    await local.close();
  });

  it('takes nothing else for a profile', () => {
    for (const json of [null, {}, { ...profile, version: 2 }, { ...profile, features: { a: { state: 'maybe' } } }])
      expect(() => readProfile(json)).toThrow('this is not a server profile');
  });
});
