import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LocalTinker } from '../../src/local/index.js';
import { connect, type Json, type LocalCaller } from './localCaller.js';
import { FakeEngine } from './localFakeEngine.js';
import { closeAfterEach, sampleBody, start, temporaryFolder } from './localFixture.js';

closeAfterEach();

interface Trained {
  readonly session: string;
  readonly model: string;
  readonly caller: LocalCaller;
  readonly next: () => number;
}

async function trained(caller: LocalCaller, steps = 1): Promise<Trained> {
  const session = await caller.createSession();
  const model = await caller.createModel(session, { rank: 4, train_mlp: false });
  let seqId = 1;
  for (let step = 0; step < steps; step++) {
    await caller.future('optim_step', { model_id: model, seq_id: seqId++, adam_params: {} });
  }
  return { session, model, caller, next: () => seqId++ };
}

const save = ({ caller, model, next }: Trained, name: string, fields: Json = {}) =>
  caller.future('save_weights', { model_id: model, seq_id: next(), path: name, ...fields });

async function sampleOf(caller: LocalCaller, session: string, path: unknown, seq: number): Promise<number> {
  const { sampling_session_id: sampler } = await caller.post('create_sampling_session', {
    session_id: session,
    sampling_session_seq_id: seq,
    model_path: path,
  });
  const { sequences } = await caller.sample(sampleBody({ sampling_session_id: sampler, seq_id: 0 }));
  return sequences[0]!.tokens[0]!;
}

describe('checkpoints', () => {
  it('saves, refuses a name that is taken, and replaces it when told to', async () => {
    const { caller } = await start();
    const run = await trained(caller);
    expect(await save(run, 'a')).toMatchObject({ path: `tinker://${run.model}/weights/a` });
    expect(await save(run, 'a')).toMatchObject({ category: 'user' });
    await caller.future('optim_step', { model_id: run.model, seq_id: run.next(), adam_params: {} });
    expect(await save(run, 'a', { overwrite: true })).toMatchObject({ path: `tinker://${run.model}/weights/a` });
    const loaded = await caller.future('load_weights', {
      model_id: run.model,
      seq_id: run.next(),
      path: `tinker://${run.model}/weights/a`,
      optimizer: true,
    });
    expect(loaded).toMatchObject({ model_id: run.model });
    const { checkpoints } = await caller.get(`training_runs/${run.model}/checkpoints`);
    expect(checkpoints).toHaveLength(1);
  });

  it('takes the kind of sampler that newer SDKs send, and refuses the kind that it does not have', async () => {
    const { caller } = await start();
    const { model, next } = await trained(caller);
    const saveAs = (kind: string) => ({ model_id: model, seq_id: next(), path: 's', kind });
    expect(await caller.future('save_weights_for_sampler', saveAs('snapshot'))).toMatchObject({
      path: `tinker://${model}/sampler_weights/s`,
    });
    const refused = await caller.send('save_weights_for_sampler', saveAs('inflight'));
    expect(refused.status).toBe(422);
    expect(await refused.text()).toContain('kind');
  });

  it('keeps a sampler on the weights that were saved while training goes on', async () => {
    const { caller } = await start();
    const run = await trained(caller, 2);
    const saved = await caller.future('save_weights_for_sampler', {
      model_id: run.model,
      seq_id: run.next(),
      path: 's',
    });
    await caller.future('optim_step', { model_id: run.model, seq_id: run.next(), adam_params: {} });
    expect(await sampleOf(caller, run.session, saved['path'], 0)).toBe(2);
  });

  it('makes a sampler without a name, whose weights go with the session', async () => {
    const { caller, local } = await start({ maxResidentSamplers: 0 });
    const run = await trained(caller, 3);
    const { sampling_session_id: sampler } = await caller.future('save_weights_for_sampler', {
      model_id: run.model,
      seq_id: run.next(),
      sampling_session_seq_id: 7,
    });
    expect(sampler).toBe(`${run.session}:sample:7`);
    for (let seqId = 0; seqId < 2; seqId++) {
      const { sequences } = await caller.sample(sampleBody({ sampling_session_id: sampler, seq_id: seqId }));
      expect(sequences[0]!.tokens[0]).toBe(3);
    }
    expect(await caller.get(`samplers/${String(sampler)}`)).toEqual({ sampler_id: sampler, base_model: 'fake/model' });
    expect(await readdir(join(local.dataFolder, 'ephemeral'))).toHaveLength(1);
    await caller.send(`sessions/${run.session}/finish`, { reason: { type: 'success' } });
    await expect.poll(() => readdir(join(local.dataFolder, 'ephemeral'))).toHaveLength(0);
  });

  it('creates a model by loading, with the checkpoint’s own adapter options', async () => {
    const { caller, engine } = await start();
    const run = await trained(caller, 2);
    const { path } = await save(run, 'a');
    const loaded = await caller.future('load_weights', {
      session_id: run.session,
      model_seq_id: 1,
      path,
      optimizer: true,
      user_metadata: { from: 'a' },
    });
    expect(loaded).toMatchObject({ model_id: `${run.session}:train:1` });
    expect(engine.models.get(`${run.session}:train:1`)).toMatchObject({ step: 2, lora: { rank: 4, trainMlp: false } });
    expect(await caller.post('get_info', { model_id: `${run.session}:train:1` })).toMatchObject({ lora_rank: 4 });
  });

  it('refuses optimizer state that a sampler checkpoint does not have', async () => {
    const { caller } = await start();
    const run = await trained(caller);
    const { path } = await caller.future('save_weights_for_sampler', {
      model_id: run.model,
      seq_id: run.next(),
      path: 's',
    });
    const load = (optimizer: boolean) =>
      caller.future('load_weights', { model_id: run.model, seq_id: run.next(), path, optimizer });
    expect(await load(true)).toMatchObject({
      category: 'user',
      error: expect.stringContaining('no optimizer') as string,
    });
    expect(await load(false)).toMatchObject({ model_id: run.model });
  });

  it('publishes, sets and removes a time to live, and deletes', async () => {
    const { caller } = await start();
    const run = await trained(caller);
    await save(run, 'a', { user_metadata: { note: 'x' } });
    const place = `training_runs/${encodeURIComponent(run.model)}/checkpoints/weights/a`;
    const read = async () => ((await caller.get('checkpoints'))['checkpoints'] as Json[])[0];
    const send = async (method: string, path: string, body?: unknown) =>
      (await caller.fetch(path, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })).status;

    expect(await send('POST', `${place}/publish`)).toBe(204);
    expect(await send('PUT', `${place}/ttl`, { ttl_seconds: 3600 })).toBe(204);
    const changed = await read();
    expect(changed).toMatchObject({
      checkpoint_id: 'weights/a',
      checkpoint_type: 'training',
      tinker_path: `tinker://${run.model}/weights/a`,
      public: true,
      user_metadata: { note: 'x' },
    });
    expect(Date.parse(changed!['expires_at'] as string) - Date.now()).toBeGreaterThan(3_000_000);
    expect(await send('PUT', `${place}/ttl`, { ttl_seconds: 60 })).toBe(422);
    expect(await send('PUT', `${place}/ttl`, { ttl_seconds: null })).toBe(204);
    expect(await send('DELETE', `${place}/publish`)).toBe(204);
    expect(await read()).not.toHaveProperty('expires_at');
    expect(await read()).toMatchObject({ public: false });
    expect(await send('DELETE', place)).toBe(204);
    expect(await send('DELETE', place)).toBe(404);
    expect(await read()).toBeUndefined();
  });

  it('copies into a run of its own that lives on when the source is deleted', async () => {
    const { caller } = await start();
    const run = await trained(caller, 5);
    const { path } = await caller.future('save_weights_for_sampler', {
      model_id: run.model,
      seq_id: run.next(),
      path: 's',
    });
    const request = { source_path: path, destination_project_id: 'archive', ttl_seconds: 7200 };
    const headers = { 'x-idempotency-key': 'copy-1' };
    const { tinker_path: copy } = await caller.post('copy_weights', request, headers);
    expect(await caller.post('copy_weights', request, headers)).toEqual({ tinker_path: copy });
    expect(copy).toMatch(/^tinker:\/\/.+:train:0\/sampler_weights\/s$/);
    const place = `training_runs/${run.model}/checkpoints/sampler_weights/s`;
    expect((await caller.fetch(place, { method: 'DELETE' })).status).toBe(204);
    expect(await sampleOf(caller, run.session, copy, 0)).toBe(5);
    const { training_runs: runs } = await caller.get('training_runs?project_id=archive');
    expect(runs).toHaveLength(1);
    const token = { 'x-tinker-weights-access-token': 'tml-wrong' };
    expect((await caller.send('copy_weights', { ...request, source_path: copy }, token)).status).toBe(403);
    const slot = { source_path: copy, session_id: run.session, model_seq_id: 0 };
    expect((await caller.send('copy_weights', slot)).status).toBe(409);
  });

  it('exports in PEFT layout behind signed URLs that expire and cannot be changed', async () => {
    const { caller } = await start({ urlTtlMs: 400 });
    const run = await trained(caller);
    const saved = await caller.future('save_weights_external', {
      model_id: run.model,
      seq_id: run.next(),
      path: 'out',
    });
    expect(saved).toMatchObject({ path: `tinker://${run.model}/external_weights/out` });
    const { urls, expires } = await caller.get(
      `training_runs/${run.model}/checkpoints/external_weights/out/external_weights_urls`,
    );
    const byName = urls as Record<string, string>;
    expect(Object.keys(byName).sort()).toEqual(['adapter_config.json', 'adapter_model.safetensors']);
    expect(Date.parse(expires as string)).toBeGreaterThan(Date.now());
    // Without any key: the signature is the permission.
    const config = await fetch(byName['adapter_config.json']!);
    expect(await config.json()).toMatchObject({ peft_type: 'LORA', r: 4, base_model_name_or_path: 'fake/model' });
    const weights = await fetch(byName['adapter_model.safetensors']!);
    expect(Number(weights.headers.get('content-length'))).toBe((await weights.arrayBuffer()).byteLength);
    const later = new URL(byName['adapter_config.json']!);
    later.searchParams.set('expires', String(Date.now() + 60_000));
    expect((await fetch(later)).status).toBe(403);
    await expect.poll(async () => (await fetch(byName['adapter_config.json']!)).status).toBe(403);
    const encrypted = { model_id: run.model, seq_id: run.next(), path: 'secret', age_encryption_recipients: ['age1x'] };
    expect(await caller.future('save_weights_external', encrypted)).toMatchObject({ category: 'user' });
  });

  it('hands out an archive by redirect, as older servers do', async () => {
    const { caller } = await start();
    const run = await trained(caller);
    await caller.future('save_weights_for_sampler', { model_id: run.model, seq_id: run.next(), path: 's' });
    for (const place of [`checkpoints/sampler_weights/s/archive`, `checkpoints/s/archive`]) {
      const response = await caller.fetch(`training_runs/${run.model}/${place}`, { redirect: 'manual' });
      expect(response.status).toBe(302);
      const archive = Buffer.from(await (await fetch(response.headers.get('location')!)).arrayBuffer());
      expect(archive.toString('latin1', 257, 262)).toBe('ustar');
      expect(archive.includes('adapter_config.json')).toBe(true);
      expect(archive.length % 512).toBe(0);
    }
  });

  it('says what is in a checkpoint', async () => {
    const { caller } = await start();
    const run = await trained(caller);
    const { path } = await save(run, 'a');
    expect(await caller.post('weights_info', { tinker_path: path })).toEqual({
      base_model: 'fake/model',
      optimizer_config: { type: 'adamw' },
      is_lora: true,
      lora_rank: 4,
      train_unembed: true,
      train_mlp: false,
      train_attn: true,
    });
    expect((await caller.send('weights_info', { tinker_path: `tinker://${run.model}/weights/none` })).status).toBe(404);
    expect((await caller.send('weights_info', { tinker_path: 'tinker://../../etc' })).status).toBe(400);
  });

  it.each([
    '..',
    '.',
    '../up',
    'a/b',
    'a\\b',
    '/etc/passwd',
    'a\0b',
    '',
    ' ',
    '-x',
    '.hidden',
    'ä',
    'x'.repeat(129),
    'CON:',
  ])('refuses the name %j and writes nothing outside the data folder', async (name) => {
    const parent = await temporaryFolder();
    const { caller } = await start({ data: join(parent, 'data') });
    const run = await trained(caller, 0);
    expect(await save(run, name)).toMatchObject({ category: 'user' });
    expect(await readdir(parent)).toEqual(['data']);
    expect(await readdir(join(parent, 'data', 'checkpoints'))).toEqual([]);
  });

  it('keeps names apart that differ in case only, and names that are devices elsewhere', async () => {
    const { caller, local } = await start();
    const run = await trained(caller, 0);
    for (const name of ['final', 'Final', 'FINAL', 'con', 'nul.txt']) {
      expect(await save(run, name)).toMatchObject({ path: `tinker://${run.model}/weights/${name}` });
    }
    const [folder] = await readdir(join(local.dataFolder, 'checkpoints'));
    const folders = await readdir(join(local.dataFolder, 'checkpoints', folder!, 'weights'));
    expect(new Set(folders.map((name) => name.toLowerCase())).size).toBe(5);
    expect(folders).not.toContain('con');
  });
});

describe('a restart', () => {
  it('keeps checkpoints, runs, sessions, usage and the audit log', async () => {
    const data = await temporaryFolder();
    const before = await LocalTinker.start({ engine: new FakeEngine(), data });
    const run = await trained(connect(before), 4);
    await save(run, 'a', { ttl_seconds: 3600 });
    await connect(before).post(`training_runs/${run.model}/checkpoints/weights/a/publish`, {});
    await before.close();

    const { caller, engine } = await start({ data });
    expect(await caller.get('checkpoints')).toMatchObject({
      checkpoints: [{ tinker_path: `tinker://${run.model}/weights/a`, public: true }],
      cursor: { offset: 0, limit: 20, total_count: 1 },
    });
    expect(await caller.get(`training_runs/${run.model}`)).toMatchObject({
      training_run_id: run.model,
      lora_rank: 4,
      last_checkpoint: { checkpoint_id: 'weights/a' },
    });
    expect(await caller.get('sessions')).toEqual({ sessions: [run.session] });
    expect((await caller.get('audit'))['entries']).toHaveLength(2);
    const session = await caller.createSession();
    await caller.future('load_weights', {
      session_id: session,
      model_seq_id: 0,
      path: `tinker://${run.model}/weights/a`,
      optimizer: true,
    });
    expect(engine.models.get(`${session}:train:0`)?.step).toBe(4);
    // The model itself is gone, and says so.
    expect((await caller.send('get_info', { model_id: run.model })).status).toBe(404);
  });

  it('clears away what an interrupted save left and says when a file is damaged', async () => {
    const data = await temporaryFolder();
    const before = await LocalTinker.start({ engine: new FakeEngine(), data });
    const run = await trained(connect(before));
    await save(run, 'whole');
    await save(run, 'damaged');
    await before.close();
    const [folder] = await readdir(join(data, 'checkpoints'));
    const weights = join(data, 'checkpoints', folder!, 'weights');
    await writeFile(join(weights, 'whole', '.tmp-0123456789ab-manifest.json'), '{');
    await writeFile(join(weights, 'whole', 'abcdef012345-state.safetensors'), 'left over');
    const [state] = (await readdir(join(weights, 'damaged'))).filter((name) => name.endsWith('.safetensors'));
    const content = await readFile(join(weights, 'damaged', state!));
    content[content.length - 1]! ^= 1;
    await writeFile(join(weights, 'damaged', state!), content);

    const { caller } = await start({ data });
    expect(await readdir(join(weights, 'whole'))).toHaveLength(2);
    const session = await caller.createSession();
    const load = (name: string, seq: number) =>
      caller.future('load_weights', {
        session_id: session,
        model_seq_id: seq,
        path: `tinker://${run.model}/weights/${name}`,
        optimizer: true,
      });
    expect(await load('whole', 0)).toMatchObject({ type: 'load_weights' });
    expect(await load('damaged', 1)).toMatchObject({
      category: 'server',
      error: expect.stringContaining('damaged') as string,
    });
  });

  it('refuses a folder that a running service has', async () => {
    const data = await temporaryFolder();
    await start({ data });
    await expect(LocalTinker.start({ engine: new FakeEngine(), data })).rejects.toThrow(/in use/);
  });
});
