import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { describe, expect, it } from 'vitest';
import { LocalTinker } from '../../src/local/index.js';
import { connect, type LocalCaller } from './localCaller.js';
import { FakeEngine } from './localFakeEngine.js';
import { closeAfterEach, sampleBody, start, temporaryFolder } from './localFixture.js';

closeAfterEach();

const makeSampler = async (caller: LocalCaller, session: string, seqId: number, weights: object): Promise<string> => {
  const request = { session_id: session, sampling_session_seq_id: seqId, ...weights };
  return (await caller.post('create_sampling_session', request))['sampling_session_id'] as string;
};
const sampleFrom = (caller: LocalCaller, id: string) =>
  caller.future('asample', sampleBody({ sampling_session_id: id, seq_id: 1 }));
const step = (caller: LocalCaller, model: string, seqId: number) =>
  caller.future('optim_step', { model_id: model, seq_id: seqId, adam_params: {} });

describe('after a restart', () => {
  it('samplers of a base model and of a saved checkpoint are still there', async () => {
    const data = await temporaryFolder();
    const before = await LocalTinker.start({ engine: new FakeEngine(), data });
    const first = connect(before);
    const session = await first.createSession();
    const model = await first.createModel(session);
    const saved = await first.future('save_weights_for_sampler', { model_id: model, seq_id: 1, path: 'kept' });
    const ofBase = await makeSampler(first, session, 0, { base_model: 'fake/model' });
    const ofCheckpoint = await makeSampler(first, session, 1, { model_path: saved['path'] });
    await before.close();

    const { caller } = await start({ data });
    expect(await sampleFrom(caller, ofBase)).toMatchObject({
      sequences: [{ stop_reason: expect.anything() as string }],
    });
    expect(await sampleFrom(caller, ofCheckpoint)).toHaveProperty('sequences');
    expect(await caller.get(`samplers/${encodeURIComponent(ofCheckpoint)}`)).toMatchObject({
      model_path: saved['path'],
    });
    // The request that made it, once more, is the same sampler; clients that join get numbers nobody had before.
    expect(await makeSampler(caller, session, 0, { base_model: 'fake/model' })).toBe(ofBase);
    const { client_counter: joined } = await caller.post('join_sampling_session', { sampling_session_id: ofBase });
    expect(joined).toBeGreaterThan(1_000_000);
  });

  it('they go with their session', async () => {
    const data = await temporaryFolder();
    const { caller } = await start({ data });
    const session = await caller.createSession();
    await makeSampler(caller, session, 0, { base_model: 'fake/model' });
    expect(readdirSync(join(data, 'samplers'))).toHaveLength(1);
    await caller.send(`sessions/${session}/finish`, { reason: { type: 'success' }, detail: null });
    await expect.poll(() => readdirSync(join(data, 'samplers'))).toEqual([]);
  });

  it('a model that lived in memory says from which checkpoint to resume', async () => {
    const data = await temporaryFolder();
    const before = await LocalTinker.start({ engine: new FakeEngine(), data });
    const first = connect(before);
    const session = await first.createSession();
    const saved = await first.createModel(session, { rank: 4 }, 0);
    const unsaved = await first.createModel(session, { rank: 4 }, 1);
    await first.future('save_weights', { model_id: saved, seq_id: 1, path: 'a' });
    await first.future('save_weights', { model_id: saved, seq_id: 2, path: 'b' });
    await before.close();

    const { caller } = await start({ data });
    const refusal = async (model: string) => {
      const response = await caller.send('optim_step', { model_id: model, seq_id: 3, adam_params: {} });
      return [response.status, ((await response.json()) as { detail: string }).detail];
    };
    expect(await refusal(saved)).toEqual([
      404,
      expect.stringContaining(`Make a new model from its last saved state, tinker://${saved}/weights/b (step 0)`),
    ]);
    expect(await refusal(unsaved)).toEqual([404, expect.stringContaining('No state of it was saved')]);
  });

  it('a sampler whose weights had no name says that they are gone', async () => {
    const data = await temporaryFolder();
    const before = await LocalTinker.start({ engine: new FakeEngine(), data });
    const first = connect(before);
    const session = await first.createSession();
    const model = await first.createModel(session);
    const { sampling_session_id: id } = await first.future('save_weights_for_sampler', {
      model_id: model,
      seq_id: 1,
      sampling_session_seq_id: 7,
    });
    await before.close();
    const { caller } = await start({ data });
    const response = await caller.send('asample', sampleBody({ sampling_session_id: id, seq_id: 1 }));
    expect(response.status).toBe(404);
    expect(await response.text()).toContain('weights saved without a name do not outlive it');
    const never = await caller.send('asample', sampleBody({ sampling_session_id: 'nobody:sample:1', seq_id: 1 }));
    expect(await never.text()).toContain('there is no sampling session nobody:sample:1');
  });
});

describe('sampler weights without a name', () => {
  it('do not fill the disk: the least recently used are dropped, and say so', async () => {
    const data = await temporaryFolder();
    const { caller } = await start({ data, maxUnnamedSamplers: 3, maxResidentSamplers: 0 });
    const session = await caller.createSession();
    const model = await caller.createModel(session);
    const save = async (seqId: number) => {
      const request = { model_id: model, seq_id: seqId, sampling_session_seq_id: seqId };
      return (await caller.future('save_weights_for_sampler', request))['sampling_session_id'] as string;
    };
    const ids: string[] = [];
    for (let seqId = 1; seqId <= 3; seqId++) ids.push(await save(seqId));
    // The first is used, so the second is now the one that was used longest ago.
    expect(await sampleFrom(caller, ids[0]!)).toHaveProperty('sequences');
    for (let seqId = 4; seqId <= 5; seqId++) ids.push(await save(seqId));
    expect(readdirSync(join(data, 'ephemeral'))).toHaveLength(3);
    const outcomes: boolean[] = [];
    for (const id of ids)
      outcomes.push(
        'sequences' in (await caller.future('asample', sampleBody({ sampling_session_id: id, seq_id: 9 }))),
      );
    expect(outcomes).toEqual([true, false, false, true, true]);
    expect(await caller.future('asample', sampleBody({ sampling_session_id: ids[1], seq_id: 10 }))).toMatchObject({
      category: 'user',
      error: expect.stringContaining('the 3 that were used last are kept. Save weights under a name') as string,
    });
  });
});

describe('a data folder', () => {
  it('whose usage.json is damaged kept the service from starting', async () => {
    const data = await temporaryFolder();
    for (const text of ['{"version":1,"buckets":[{"sta', '{}', 'null', '{"buckets":[null,{"startMs":1}]}']) {
      writeFileSync(join(data, 'usage.json'), text);
      const { local, caller } = await start({ data });
      expect(await caller.get('healthz')).toEqual({ status: 'ok' });
      await local.close();
    }
  });

  it('keeps every file that the service has not written', async () => {
    const data = await temporaryFolder();
    const foreign = [
      'ephemeral/notes.txt',
      'ephemeral/mine/deep.safetensors',
      'checkpoints/photos/weights/holiday/beach.jpg',
      'runs/.tmp-mine',
      'sessions/readme.md',
    ];
    const put = (path: string) => {
      mkdirSync(join(data, path, '..'), { recursive: true });
      writeFileSync(join(data, path), 'mine');
    };
    foreign.forEach(put);
    const before = await LocalTinker.start({ engine: new FakeEngine(), data });
    const caller = connect(before);
    const model = await caller.createModel(await caller.createSession());
    await caller.future('save_weights', { model_id: model, seq_id: 1, path: 'a' });
    const [run] = readdirSync(join(data, 'checkpoints')).filter((name) => name !== 'photos');
    const beside = `checkpoints/${run}/weights/a/mine.txt`;
    put(beside);
    await before.close();

    const again = await start({ data });
    await again.caller.fetch(`training_runs/${model}/checkpoints/weights/a`, { method: 'DELETE' });
    expect(readdirSync(join(data, `checkpoints/${run}/weights/a`))).toEqual(['mine.txt']);
    const there = readdirSync(data, { recursive: true }).map((path) => String(path).replaceAll('\\', '/'));
    expect(there).toEqual(expect.arrayContaining([...foreign, beside]));
  });

  it('whose stale lock several processes find at the same moment has one owner', async () => {
    const folder = await temporaryFolder();
    const lock = join(folder, 'lock.mjs');
    const bundle = await rolldown({
      input: fileURLToPath(new URL('../../src/support/files/lockFolder.ts', import.meta.url)),
      platform: 'node',
    });
    await bundle.write({ file: lock, format: 'esm' });
    await bundle.close();
    const program = `import { lockFolder } from ${JSON.stringify(pathToFileURL(lock).href)};
      process.on('message', (path) => lockFolder(path).then(() => process.send(true), () => process.send(false)));`;
    writeFileSync(join(folder, 'child.mjs'), program);
    const children = Array.from({ length: 3 }, () => fork(join(folder, 'child.mjs'), { execArgv: [] }));
    try {
      for (let round = 0; round < 40; round++) {
        const data = join(folder, `data-${round}`);
        mkdirSync(data);
        // No process has this number.
        writeFileSync(join(data, 'lock'), JSON.stringify({ pid: 2 ** 30, host: hostname() }));
        const outcomes = children.map((child) => once(child, 'message'));
        for (const child of children) child.send(data);
        const owners = (await Promise.all(outcomes)).filter(([owns]) => owns === true);
        expect(owners.length, `round ${round}`).toBe(1);
      }
    } finally {
      for (const child of children) child.kill();
    }
  });

  it('whose lock is stale is taken over, and given back', async () => {
    const data = await temporaryFolder();
    writeFileSync(join(data, 'lock'), JSON.stringify({ pid: 2 ** 30, host: hostname() }));
    const local = await LocalTinker.start({ engine: new FakeEngine(), data });
    const { pid } = JSON.parse(readFileSync(join(data, 'lock'), 'utf8')) as { pid: number };
    expect(pid).toBe(process.pid);
    await local.close();
    expect(readdirSync(data).filter((name) => name.startsWith('lock'))).toEqual([]);
  });
});

describe('a full disk', () => {
  /** A file in the place of a folder: nothing can be written there any more. */
  const fill = (data: string, folder: string) => {
    rmSync(join(data, folder), { recursive: true });
    writeFileSync(join(data, folder), '');
  };
  const free = (data: string, folder: string) => {
    rmSync(join(data, folder));
    mkdirSync(join(data, folder));
  };

  it('leaves no session behind that was refused', async () => {
    const data = await temporaryFolder();
    const { caller } = await start({ data });
    fill(data, 'sessions');
    expect((await caller.send('create_session', { tags: [], sdk_version: 'test' })).status).toBe(500);
    expect(await caller.get('sessions')).toEqual({ sessions: [] });
  });

  it('leaves no model behind that could not be made: the same request works later', async () => {
    const data = await temporaryFolder();
    const { caller, engine } = await start({ data });
    const session = await caller.createSession();
    fill(data, 'runs');
    const request = { session_id: session, model_seq_id: 0, base_model: 'fake/model', lora_config: { rank: 4 } };
    expect(await caller.future('create_model', request)).toMatchObject({ category: 'server' });
    expect(engine.models.size).toBe(0);
    const ghost = await caller.send('optim_step', { model_id: `${session}:train:0`, seq_id: 1, adam_params: {} });
    expect(ghost.status).toBe(404);
    free(data, 'runs');
    const { model_id: model } = await caller.future('create_model', request);
    expect(await step(caller, model as string, 1)).toMatchObject({ type: 'optim_step' });
  });

  it('leaves no sampler behind that was refused', async () => {
    const data = await temporaryFolder();
    const { caller } = await start({ data });
    const session = await caller.createSession();
    fill(data, 'samplers');
    const request = { session_id: session, sampling_session_seq_id: 0, base_model: 'fake/model' };
    expect((await caller.send('create_sampling_session', request)).status).toBe(500);
    expect((await caller.fetch(`samplers/${encodeURIComponent(`${session}:sample:0`)}`)).status).toBe(404);
  });
});
