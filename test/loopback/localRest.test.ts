import { describe, expect, it } from 'vitest';
import type { Json, LocalCaller } from './localCaller.js';
import { closeAfterEach, datum, sampleBody, start } from './localFixture.js';

closeAfterEach();

const hour = (offset: number): string => {
  const start = Math.floor(Date.now() / 3_600_000) * 3_600_000;
  return new Date(start + offset * 3_600_000).toISOString();
};

/** A session that trained 2 × 5 tokens, saved twice, and sampled 3 × 2 tokens from 3. */
async function life(caller: LocalCaller): Promise<{ session: string; model: string; sampler: string }> {
  const session = await caller.createSession({ user_metadata: { team: 'a' }, display_name: 'Nightly run' });
  const model = await caller.createModel(session);
  await caller.forwardBackward(model, 1, [datum(5), datum(5)]);
  await caller.future('save_weights', { model_id: model, seq_id: 2, path: 'w' });
  const { path } = await caller.future('save_weights_for_sampler', { model_id: model, seq_id: 3, path: 's' });
  const { sampling_session_id: sampler } = await caller.post('create_sampling_session', {
    session_id: session,
    sampling_session_seq_id: 0,
    model_path: path,
  });
  await caller.sample(sampleBody({ sampling_session_id: sampler, seq_id: 0, num_samples: 3 }));
  return { session, model, sampler: sampler as string };
}

describe('records', () => {
  it('lists training runs by last use, page by page', async () => {
    const { caller } = await start();
    const session = await caller.createSession();
    const models: string[] = [];
    for (let index = 0; index < 3; index++) {
      models.push(await caller.createModel(session, { rank: index + 1 }, index));
    }
    await caller.future('optim_step', { model_id: models[0], seq_id: 1, adam_params: {} });
    const first = await caller.get('training_runs?limit=2');
    expect((first['training_runs'] as Json[]).map((run) => run['training_run_id'])).toEqual([models[0], models[2]]);
    expect(first['cursor']).toEqual({ offset: 0, limit: 2, total_count: 3 });
    const rest = await caller.get('training_runs?limit=2&offset=2&access_scope=owned');
    expect(rest['training_runs']).toMatchObject([{ training_run_id: models[1], lora_rank: 2, is_lora: true }]);
    expect((await caller.fetch('training_runs?limit=x')).status).toBe(422);
    expect((await caller.fetch('training_runs/none')).status).toBe(404);
    expect((await caller.fetch('training_runs/none/checkpoints')).status).toBe(404);
  });

  it('knows a session, its runs and its samplers', async () => {
    const { caller } = await start();
    const { session, model, sampler } = await life(caller);
    expect(await caller.get(`sessions/${session}`)).toEqual({
      training_run_ids: [model],
      sampler_ids: [sampler],
      user_metadata: { team: 'a' },
      display_name: 'Nightly run',
    });
    expect(await caller.get(`samplers/${sampler}`)).toEqual({
      sampler_id: sampler,
      base_model: 'fake/model',
      model_path: `tinker://${model}/sampler_weights/s`,
    });
    expect((await caller.fetch('sessions/none')).status).toBe(404);
  });

  it('searches sessions by every filter, newest first, page by page', async () => {
    const { caller } = await start();
    const { session } = await life(caller);
    const others: string[] = [];
    for (let index = 0; index < 3; index++)
      others.unshift(await caller.createSession({ display_name: `day ${index}` }));
    await caller.send(`sessions/${others[0]}/finish`, { reason: { type: 'errored' } });
    const search = async (query: Json) =>
      ((await caller.post('sessions/search', query))['sessions'] as Json[]).map((found) => found['session_id']);

    expect(await search({})).toEqual([...others, session]);
    expect(await search({ display_name: 'RUN night' })).toEqual([session]);
    expect(await search({ session_id: session, display_name: 'day 1' })).toEqual([others[1], session]);
    expect(await search({ user_metadata: { team: 'a' } })).toEqual([session]);
    expect(await search({ user_metadata: { team: 'b' } })).toEqual([]);
    expect(await search({ statuses: [{ type: 'client_finished', reasons: ['errored'] }] })).toEqual([others[0]]);
    expect(await search({ statuses: [{ type: 'client_finished', reasons: ['success'] }] })).toEqual([]);
    expect(await search({ owner: { type: 'user', owner_urns: ['tml:organization_user:other'] } })).toEqual([]);

    expect(
      (await caller.fetch(`sessions/${session}/project`, { method: 'PUT', body: '{"project_id":"p1"}' })).status,
    ).toBe(204);
    expect(await search({ project_ids: ['p1'] })).toEqual([session]);
    const [summary] = (await caller.post('sessions/search', { project_ids: ['p1'] }))['sessions'] as Json[];
    expect(summary).toMatchObject({ project_id: 'p1', checkpoints_count: 2, status: { type: 'active' } });

    const first = await caller.post('sessions/search', { limit: 3 });
    const second = await caller.post('sessions/search', { limit: 3, cursor: first['next_cursor'] });
    expect((first['sessions'] as Json[]).map((found) => found['session_id'])).toEqual(others);
    expect((second['sessions'] as Json[]).map((found) => found['session_id'])).toEqual([session]);
    expect(second).not.toHaveProperty('next_cursor');
  });
});

describe('what was used and done', () => {
  it('counts tokens, checkpoints and storage by the hour, without prices', async () => {
    const { caller } = await start();
    const { session } = await life(caller);
    const usage = await caller.get(`billing/usage/events?starting_on=${hour(-1)}&ending_before=${hour(2)}`);
    const events = usage['data'] as Json[];
    const amounts: Record<string, Json> = {};
    for (const { event_info: info } of events) amounts[(info as Json)['type'] as string] = info as Json;
    expect(amounts).toMatchObject({
      training: { token_count: 10 },
      sampling_prefill: { token_count: 3, cached: false },
      sampling_sample: { token_count: 6 },
      checkpoint: { count: 2 },
    });
    expect(amounts['storage']!['gigabyte_hours']).toBeGreaterThan(0);
    expect(events.every((event) => event['session_id'] === session && !('estimated_cost_usd' in event))).toBe(true);
    expect(usage['sessions']).toEqual({ [session]: { user_metadata: { team: 'a' } } });
    const storage = await caller.get('billing/usage/checkpoints/current');
    expect(storage['data']).toMatchObject([{ project_id: 'default', checkpoint_count: 2 }]);
    expect(await caller.get('billing/usage/checkpoints/current?project_id=other')).toEqual({ data: [] });
  });

  it('does not count work that failed', async () => {
    const { caller } = await start();
    const model = await caller.createModel(await caller.createSession());
    await expect(caller.forwardBackward(model, 1, [datum()], { lossFn: 'dro' })).rejects.toThrow('no loss');
    expect(await caller.get(`billing/usage/events?starting_on=${hour(-1)}&ending_before=${hour(2)}`)).toEqual({
      data: [],
      sessions: {},
    });
  });

  it.each([
    ['starting_on=x&ending_before=y', 422],
    [`starting_on=${hour(0)}&ending_before=${hour(-1)}`, 400],
    [`starting_on=${hour(-400)}&ending_before=${hour(0)}`, 400],
    [`starting_on=2026-01-01T00:30:00Z&ending_before=2026-01-01T02:00:00Z`, 400],
  ])('refuses the period %s', async (query, status) => {
    const { caller } = await start();
    expect((await caller.fetch(`billing/usage/events?${query}`)).status).toBe(status);
  });

  it('keeps an audit log', async () => {
    const { caller } = await start();
    const { session, model } = await life(caller);
    await caller.fetch(`training_runs/${model}/checkpoints/weights/w`, { method: 'DELETE' });
    await caller.fetch(`sessions/${session}/project`, { method: 'PUT', body: '{"project_id":"p1"}' });
    const events = async (query: string) =>
      ((await caller.get(`audit?${query}`))['entries'] as Json[]).map((entry) => entry['event']);
    expect(await events('event_type=checkpoints')).toEqual([
      'checkpoint_create',
      'checkpoint_create',
      'checkpoint_read',
      'checkpoint_delete',
    ]);
    expect(await events('event_type=projects')).toEqual(['project_session_assign']);
    // The day may end while this runs.
    const days = [0, 1].map((day) => new Date(Date.now() - day * 86_400_000).toISOString().slice(0, 10));
    expect((await Promise.all(days.map((day) => events(`day=${day}`)))).flat()).toHaveLength(5);
    expect(await events('day=2020-01-01')).toEqual([]);
    expect((await caller.fetch('audit?event_type=nonsense')).status).toBe(422);
  });

  it('exports the timeline of a session behind a signed URL', async () => {
    const { caller } = await start();
    const { session, model, sampler } = await life(caller);
    const { status, url } = await caller.get(`sessions/${session}/trace_export`);
    expect(status).toBe('ready');
    const { traceEvents } = (await (await fetch(url as string)).json()) as { traceEvents: Json[] };
    const spans = traceEvents.filter(({ ph }) => ph === 'X').map(({ name }) => name);
    expect(spans).toEqual(['CreateModel', 'ForwardBackward', 'SaveWeights', 'SaveWeightsForSampler', 'Sample']);
    const names = traceEvents.filter(({ name }) => name === 'thread_name').map(({ args }) => (args as Json)['name']);
    expect(names).toEqual([model, sampler]);
  });

  it('takes telemetry', async () => {
    const { caller } = await start();
    const batch = { events: [], platform: 'x', sdk_version: 'x', session_id: 'x', process_uuid: 'x' };
    expect(await caller.post('telemetry', batch)).toEqual({ status: 'accepted' });
  });

  it('unloads a model', async () => {
    const { caller, engine } = await start();
    const model = await caller.createModel(await caller.createSession());
    expect(await caller.future('unload_model', { model_id: model })).toMatchObject({ model_id: model });
    expect(engine.models.size).toBe(0);
    expect((await caller.send('get_info', { model_id: model })).status).toBe(404);
  });
});
