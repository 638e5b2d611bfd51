import type { Either } from 'fp-ts/lib/Either.js';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  filter,
  firstValueFrom,
  lastValueFrom,
  map,
  of,
  range,
  Subject,
  takeWhile,
  throwError,
  timeout,
  toArray,
} from 'rxjs';
import { afterEach, describe, expect, expectTypeOf, it } from 'vitest';
import { BadRequestError, isRight, ModelInput, type TinkerEvent } from 'tinker-rx';
import {
  type Dashboard,
  type DashboardMessage,
  type DashboardSource,
  type DashboardState,
  foldDashboard,
  fromDashboard,
  type SampleToShow,
  serveDashboard,
} from 'tinker-rx/dashboard';
import { type Sampleable, type Sampled, type SampleFailure, sampleFrom, type Step } from 'tinker-rx/operators';
import { metricsLog } from 'tinker-rx/sinks';

const step = (index: number, more: Partial<Step> = {}): Step => ({
  index,
  loss: 1 / (index + 1),
  lossSum: 1,
  metrics: { 'reward/mean': index },
  datums: 1,
  tokens: 10,
  learningRate: 1e-4,
  batches: index + 1,
  durationMs: 10,
  ...more,
});

const open: Dashboard[] = [];
const folders: string[] = [];
const serve = async (...args: Parameters<typeof serveDashboard>): Promise<Dashboard> => {
  const dashboard = await serveDashboard(...args);
  open.push(dashboard);
  return dashboard;
};
const folder = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'tinker-rx-feed-'));
  folders.push(made);
  return made;
};
afterEach(async () => {
  await Promise.all(open.splice(0).map((dashboard) => dashboard.close()));
  for (const made of folders.splice(0)) rmSync(made, { recursive: true });
});

/** The state of a page, once it holds. */
const seen = (dashboard: Dashboard, holds: (state: DashboardState) => boolean): Promise<DashboardState> =>
  firstValueFrom(fromDashboard(dashboard.url).pipe(foldDashboard(), filter(holds), timeout(5000)));
const steps =
  (count: number, run = 'run') =>
  (state: DashboardState) =>
    state.runs.get(run)?.series.length === count;

describe('what a page is sent', () => {
  it('has the options of each run: those of a log, and those given with steps', async () => {
    const log = folder();
    await lastValueFrom(
      of(step(0)).pipe(metricsLog(join(log, 'logged'), { config: { rank: 8, apiKey: 'tml-secret123' } })),
    );
    mkdirSync(join(log, 'broken'));
    writeFileSync(join(log, 'broken', 'config.json'), '{');
    writeFileSync(join(log, 'broken', 'metrics.jsonl'), `${JSON.stringify(step(0))}\n`);
    const dashboard = await serve({ log });
    await lastValueFrom(of(step(0)).pipe(dashboard.showSteps('live', { config: { rank: 16 } })));
    const { runs } = await seen(dashboard, (state) => state.runs.size === 3);
    expect(runs.get('logged')!.config).toStrictEqual({ rank: 8, apiKey: '[secret]' });
    expect(runs.get('live')!.config).toStrictEqual({ rank: 16 });
    expect(runs.get('broken')!.config).toBeUndefined();
  });

  it('is everything so far, and then what comes', async () => {
    const source = new Subject<Step>();
    const dashboard = await serve({ steps: source });
    for (let index = 0; index < 5; index++) source.next(step(index));
    const done = seen(dashboard, steps(8));
    await seen(dashboard, steps(5));
    for (let index = 5; index < 8; index++) source.next(step(index));
    const state = await done;
    expect([...state.runs.get('run')!.series.column('reward/mean')!]).toStrictEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('is only what was missed, for a page that comes back', async () => {
    const source = new Subject<Step>();
    const dashboard = await serve({ steps: source });
    for (let index = 0; index < 5; index++) source.next(step(index));
    const ids: string[] = [];
    // Two connections: the first is cut by us after its first messages, the second asks to go on.
    const first: DashboardMessage[] = [];
    const { signal, headers } = connection(dashboard);
    const response = await fetch(new URL('/events', dashboard.url), { headers, signal: signal.signal });
    const reader = response.body!.getReader();
    let text = '';
    while (!text.includes('hello')) text += Buffer.from((await reader.read()).value).toString();
    signal.abort();
    for (const [, id] of text.matchAll(/^id: (.*)$/gm)) ids.push(id!);
    for (const [, data] of text.matchAll(/^data: (.*)$/gm)) first.push(JSON.parse(data!) as DashboardMessage);
    expect(first[0]!.type).toBe('reset');

    source.next(step(5));
    source.next(step(6));
    const messages = await again(dashboard, ids.at(-1)!, 'steps');
    expect(messages.map(({ type }) => type)).toStrictEqual(['changes']);
    expect(messages[0]).toMatchObject({
      changes: [
        { kind: 'steps', index: [5] },
        { kind: 'steps', index: [6] },
      ],
    });
  });

  it('is everything again, for a page that was away too long or knows another server', async () => {
    const source = new Subject<Step>();
    const dashboard = await serve({ steps: source });
    source.next(step(0));
    for (const id of ['another-1', 'garbage', `${'0'.repeat(12)}-1`]) {
      const [first] = await again(dashboard, id, 'steps');
      expect(first).toMatchObject({ type: 'reset', title: 'tinker-rx' });
    }
  });

  it.each([
    ['gzip, br', 'gzip'],
    ['identity', null],
  ])('is compressed as the page accepts it: %s', async (accepted, encoding) => {
    const dashboard = await serve({ steps: of(step(0)) });
    const { signal, headers } = connection(dashboard);
    const response = await fetch(new URL('/events', dashboard.url), {
      headers: { ...headers, 'accept-encoding': accepted },
      signal: signal.signal,
    });
    expect(response.headers.get('content-encoding')).toBe(encoding);
    const reader = response.body!.getReader();
    let text = '';
    while (!text.includes('hello')) text += Buffer.from((await reader.read()).value).toString();
    signal.abort();
    expect(text).toContain('"kind":"steps"');
  });

  it('has no gap and nothing twice, however often the page comes and goes', async () => {
    const source = new Subject<Step>();
    const dashboard = await serve({ steps: source });
    let index = 0;
    const adding = setInterval(() => source.next(step(index++)), 2);
    const states = await Promise.all(
      Array.from({ length: 10 }, async (_, page) => {
        await new Promise((resolve) => setTimeout(resolve, page * 37));
        return seen(dashboard, (state) => (state.runs.get('run')?.series.length ?? 0) >= 250);
      }),
    );
    clearInterval(adding);
    for (const state of states) {
      const { series } = state.runs.get('run')!;
      expect([...series.index]).toStrictEqual(Array.from({ length: series.length }, (_, at) => at));
    }
  });

  it('tells of runs that finish, fail, evaluate and save', async () => {
    const failing = throwError(() => new Error('out of luck'));
    const checkpoint = { name: 'c1', steps: 2, batches: 2, kept: true, statePath: 'tinker://r/weights/c1' };
    const good = of(
      step(0),
      step(1, { checkpoint, evaluations: [{ index: 0, metrics: { accuracy: 0.5 }, durationMs: 1 }] }),
    );
    const dashboard = await serve({ steps: { good, failing } });
    const state = await seen(dashboard, ({ runs }) => runs.size === 2 && runs.get('good')!.series.length === 2);
    expect(state.runs.get('good')!.status).toBe('finished');
    expect(state.runs.get('good')!.checkpoints.toArray()).toMatchObject([checkpoint]);
    expect([...state.runs.get('good')!.series.column('eval/accuracy')!]).toStrictEqual([0.5, NaN]);
    expect(state.runs.get('failing')).toMatchObject({ status: 'failed', message: 'out of luck' });
  });

  it('makes a run of each model whose steps are in the events', async () => {
    const events$ = new Subject<TinkerEvent>();
    const dashboard = await serve(events$);
    for (const target of ['m1', 'm2', 'm1']) {
      events$.next({ type: 'step-end', target, seqId: 1, metrics: { norm: 2 }, atMs: 1 });
    }
    for (const path of ['tinker://s/weights/a', 'tinker://s/sampler_weights/b']) {
      events$.next({ type: 'checkpoint-saved', target: 'm1', path, seqId: 2, atMs: 3 });
    }
    events$.complete();
    const state = await seen(dashboard, ({ runs }) => runs.get('m2')?.status === 'finished');
    expect(state.runs.get('m1')!.series.length).toBe(2);
    expect(state.runs.get('m1')!.series.last('norm')).toBe(2);
    expect(state.runs.get('m1')!.checkpoints.toArray()).toMatchObject([
      { name: 'a', steps: 2, statePath: 'tinker://s/weights/a' },
      { name: 'b', steps: 2, samplerPath: 'tinker://s/sampler_weights/b' },
    ]);
  });

  it('shows steps and samples on their way, and hands them on as they are', async () => {
    const dashboard = await serve();
    const out = await lastValueFrom(
      range(0, 3).pipe(
        map((index) => step(index)),
        dashboard.showSteps('mine'),
        toArray(),
      ),
    );
    expect(out).toStrictEqual([step(0), step(1), step(2)]);
    const bytes = Int32Array.from(Buffer.from('é!'));
    const sampled = {
      item: ModelInput.fromInts(Buffer.from('say')),
      rewards: [0.5],
      response: {
        sequences: [{ stopReason: 'stop' as const, tokens: bytes, logprobs: Float32Array.from([-0.5, -0.25, -3]) }],
        promptCacheHitTokens: 0,
      },
    };
    const decode = (tokens: ArrayLike<number>) => Buffer.from(Array.from(tokens)).toString();
    await lastValueFrom(of<SampleToShow>(sampled).pipe(dashboard.showSamples({ decode, run: 'mine' })));
    const state = await seen(dashboard, ({ samples }) => samples.length === 1);
    // The two bytes of é are one piece.
    expect(state.samples.last).toMatchObject({
      prompt: 'say',
      pieces: ['é', '!'],
      tokens: [[195, 169], 33],
      logprobs: [-0.75, -3],
      reward: 0.5,
      run: 'mine',
      stopReason: 'stop',
      length: 3,
    });
  });

  it('shows settled samples, and passes the failures among them', async () => {
    const dashboard = await serve();
    const response = {
      sequences: [{ stopReason: 'stop' as const, tokens: Int32Array.of(7) }],
      promptCacheHitTokens: 0,
    };
    const fails = (prompt: ModelInput) => prompt.length === 2;
    const sampler: Sampleable = {
      sample: ({ prompt }) => (fails(prompt) ? throwError(() => new Error('no')) : of(response)),
    };
    const settled = of([5, 5], [5]).pipe(
      map((tokens) => ModelInput.fromInts(tokens)),
      sampleFrom(sampler, { settle: true }),
      dashboard.showSamples(),
      toArray(),
    );
    const results = await lastValueFrom(settled);
    expectTypeOf(results).toEqualTypeOf<Either<SampleFailure<ModelInput>, Sampled<ModelInput, Sampleable>>[]>();
    expect(results.map(isRight)).toStrictEqual([false, true]);
    const state = await seen(dashboard, ({ samples }) => samples.length === 1);
    expect(state.samples.last).toMatchObject({ pieces: ['7 '] });
  });

  it("does not end the user's stream with a throw of decode: the tokens are shown as numbers", async () => {
    const dashboard = await serve();
    const response = {
      sequences: [{ stopReason: 'stop' as const, tokens: Int32Array.of(7, 8) }],
      promptCacheHitTokens: 0,
    };
    const decode = () => {
      throw new RangeError('no such token');
    };
    const shown = of<SampleToShow>({ item: ModelInput.fromInts([5]), response }).pipe(
      dashboard.showSamples({ decode }),
    );
    expect((await lastValueFrom(shown)).response).toBe(response);
    const state = await seen(dashboard, ({ samples }) => samples.length === 1);
    expect(state.samples.last).toMatchObject({ prompt: '5 ', pieces: ['7 ', '8 '] });
  });

  it('has the mean reward of the samples since the last step, where the step has none', async () => {
    const source = new Subject<Step>();
    const dashboard = await serve({ steps: source });
    const sampled = (rewards: number[]): SampleToShow => ({
      item: 'say',
      rewards,
      response: {
        sequences: rewards.map(() => ({ stopReason: 'stop' as const, tokens: Int32Array.of(1) })),
        promptCacheHitTokens: 0,
      },
    });
    const plain = { metrics: { norm: 1 } };
    await lastValueFrom(of(sampled([0, 1]), sampled([1, 1])).pipe(dashboard.showSamples()));
    source.next(step(0, plain));
    source.next(step(1, plain));
    await lastValueFrom(of(sampled([0.5])).pipe(dashboard.showSamples()));
    source.next(step(2));
    const { series } = (await seen(dashboard, steps(3))).runs.get('run')!;
    expect([...series.column('reward/samples')!]).toStrictEqual([0.75, NaN, NaN]);
    expect(series.last('reward/mean')).toBe(2);
  });

  it('is what the client has to do, also for a page that comes back', async () => {
    const events$ = new Subject<TinkerEvent>();
    const use = { inUse: 3, size: 10, waiting: 1 };
    const budgets = { sampleSlots: use, sampleBytes: use, trainingBytes: use, resultBytes: use };
    const call = { requestType: 'OptimStep' as const, target: 'm', sinceMs: 1, requestId: undefined };
    let calls = [call];
    const dashboard = await serve({ events$, pending: () => ({ calls, budgets }) });
    const state = await seen(dashboard, ({ events }) => events.load !== undefined);
    expect(state.events.load).toMatchObject({ calls: 1, unsent: [{ requestType: 'OptimStep', before: 0 }], budgets });
    expect(state.events.bytesBeingSent).toBe(6);
    calls = [];
    await seen(dashboard, ({ events }) => events.load?.calls === 0);
    const text = await everything(dashboard);
    const id = /^id: (.*)$/m.exec(text)![1]!;
    const messages = await again(dashboard, id, 'load');
    expect(messages).toMatchObject([{ type: 'changes', changes: [{ kind: 'load', load: { calls: 0 } }] }]);
  });

  it('covers a key that a sample says, however it is cut', async () => {
    const dashboard = await serve();
    const words = ['the key is ', 'tml-abc', 'defghijk', 'lmnop', ' and that was it'];
    const response = {
      sequences: [{ stopReason: 'stop' as const, tokens: Int32Array.of(0, 1, 2, 3, 4) }],
      promptCacheHitTokens: 0,
    };
    const decode = (tokens: ArrayLike<number>) => Array.from(tokens, (token) => words[token]).join('');
    await lastValueFrom(of({ item: 'say', response }).pipe(dashboard.showSamples({ decode })));
    const state = await seen(dashboard, ({ samples }) => samples.length === 1);
    expect(state.samples.last!.pieces).toStrictEqual([
      'the key is ',
      '•••••••',
      '••••••••',
      '•••••',
      ' and that was it',
    ]);
  });

  it('has no key in it, wherever one got into', async () => {
    const key = 'tml-abcdefghijklmnop';
    const events$ = new Subject<TinkerEvent>();
    const source: DashboardSource = { events$, steps: throwError(() => new Error(`bad key\n${key}`)) };
    const dashboard = await serve(source, { title: `mine ${key}` });
    const error = new BadRequestError(`told "${key}" to go`, {
      status: 400,
      headers: { 'x-api-key': key },
      body: { key },
    });
    events$.next({ type: 'request-failed', elapsedMs: 1, error, atMs: 1 });
    events$.next({
      type: 'session-message',
      level: 'error',
      message: `token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def`,
      atMs: 2,
    });
    events$.next({ type: 'config-changed', what: 'hf_abcdefghijklmnop', atMs: 2 });
    const text = await everything(dashboard);
    expect(text).toContain('[secret]');
    expect(text).toContain('to go');
    expect(text).not.toContain('abcdefghijklmnop');
    expect(text).not.toContain('eyJzdWIi');
    expect(text).not.toContain('x-api-key');
    expect(await (await fetch(dashboard.url)).text()).not.toContain('abcdefghijklmnop');
  });
});

describe('a log folder', () => {
  it('is shown as it is and as it grows, torn lines when they are whole', async () => {
    const log = folder();
    await lastValueFrom(
      range(0, 3).pipe(
        map((index) => step(index)),
        metricsLog(log),
      ),
    );
    const dashboard = await serve({ log });
    const name = log.split('/').at(-1)!;
    await seen(dashboard, steps(3, name));
    const line = JSON.stringify({ ...step(3), atMs: 1 });
    appendFileSync(join(log, 'metrics.jsonl'), line.slice(0, 20));
    const four = seen(dashboard, steps(4, name));
    await new Promise((resolve) => setTimeout(resolve, 700));
    appendFileSync(join(log, 'metrics.jsonl'), `${line.slice(20)}\n`);
    expect((await four).runs.get(name)!.series.last('reward/mean')).toBe(3);
  });

  it('may be long: its rows are read many at a time, evaluations and checkpoints at their place', async () => {
    const log = folder();
    const checkpoint = { name: 'c', steps: 1500, batches: 1500, kept: true, statePath: 'tinker://r/weights/c' };
    const evaluations = [{ index: 1200, metrics: { accuracy: 0.5 }, durationMs: 1 }];
    const line = (index: number) =>
      JSON.stringify({ ...step(index), atMs: index * 1000, ...(index === 1499 ? { checkpoint, evaluations } : {}) });
    writeFileSync(join(log, 'metrics.jsonl'), Array.from({ length: 3000 }, (_, index) => `${line(index)}\n`).join(''));
    const name = log.split('/').at(-1)!;
    const { runs } = await seen(await serve({ log }), steps(3000, name));
    const { series, checkpoints } = runs.get(name)!;
    expect(series.column('reward/mean')![2999]).toBe(2999);
    expect(series.column('eval/accuracy')![1200]).toBe(0.5);
    // Ten tokens a step, a step a second.
    expect(series.column('tokensPerSecond')![2000]).toBe(10);
    expect(checkpoints.toArray()).toMatchObject([checkpoint]);
  });

  it('passes over samples that are none', async () => {
    const log = folder();
    writeFileSync(join(log, 'metrics.jsonl'), '');
    const sample = { atMs: 1, prompt: 'p', pieces: ['x'], tokens: [1] };
    const lines = [{ ...sample, pieces: [1] }, { ...sample, tokens: 3 }, null, {}, { ...sample, prompt: 0 }, sample];
    writeFileSync(join(log, 'samples.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const state = await seen(await serve({ log }), ({ samples }) => samples.length === 1);
    expect(state.samples.last).toMatchObject({ id: 0, pieces: ['x'], length: 1 });
  });

  it('may hold several runs, and one that starts again starts from nothing', async () => {
    const log = folder();
    for (const run of ['a', 'b'])
      await lastValueFrom(
        range(0, 4).pipe(
          map((index) => step(index)),
          metricsLog(join(log, run)),
        ),
      );
    const dashboard = await serve({ log });
    const state = await seen(
      dashboard,
      ({ runs }) => runs.size === 2 && [...runs.values()].every(({ series }) => series.length === 4),
    );
    expect([...state.runs.keys()].sort()).toStrictEqual(['a', 'b']);
    await lastValueFrom(
      range(0, 2).pipe(
        map((index) => step(index)),
        metricsLog(join(log, 'a')),
      ),
    );
    await seen(dashboard, steps(2, 'a'));
  });

  it('is waited for where it is not there yet, and lines that are no steps are passed over', async () => {
    const log = join(folder(), 'later');
    const dashboard = await serve({ log });
    mkdirSync(log);
    writeFileSync(join(log, 'metrics.jsonl'), `nonsense\nnull\n{"index":"x"}\n${JSON.stringify(step(0))}\n`);
    await seen(dashboard, steps(1, 'later'));
  });
});

function connection(dashboard: Dashboard): { signal: AbortController; headers: Record<string, string> } {
  const token = new URL(dashboard.url).searchParams.get('token')!;
  return { signal: new AbortController(), headers: { authorization: `Bearer ${token}` } };
}

/** The messages of a connection that asks to go on after an id, until one has a change of this kind. */
async function again(dashboard: Dashboard, id: string, kind: string): Promise<DashboardMessage[]> {
  const headersFor = connection(dashboard).headers;
  return lastValueFrom(
    fromDashboard(dashboard.url, {
      fetch: (url, init) => fetch(url, { ...init, headers: { ...headersFor, 'last-event-id': id } }),
    }).pipe(
      takeWhile(
        (message) => message.type !== 'changes' || !message.changes.some((change) => change.kind === kind),
        true,
      ),
      toArray(),
      timeout(5000),
    ),
  );
}

/** All text of a connection up to its hello. */
async function everything(dashboard: Dashboard): Promise<string> {
  const { signal, headers } = connection(dashboard);
  const response = await fetch(new URL('/events', dashboard.url), { headers, signal: signal.signal });
  const reader = response.body!.getReader();
  let text = '';
  while (!text.includes('hello')) text += Buffer.from((await reader.read()).value).toString();
  signal.abort();
  return text;
}
