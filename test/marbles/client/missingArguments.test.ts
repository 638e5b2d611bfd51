import { EMPTY, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { AdminClient, RestClient, ValidationError, type TinkerError } from 'tinker-rx';
import { json, refusal } from 'tinker-rx/testing';
import { datum, prompt, stage, type Stage } from './stage.js';

/** What a program without types may give a call by mistake, as lists of arguments. */
const MISTAKES: readonly (readonly unknown[])[] = [
  [],
  [null],
  [5],
  [''],
  ['..'],
  [[]],
  [{}],
  [Symbol('x')],
  [() => 1],
  [null, null],
  ['x', null],
  ['x', 5],
  ['tinker://run/weights/a', null],
  [[datum()], null],
  [[datum()], 'cross_entropy', null],
  [prompt(), null],
  [{ prompt: prompt() }, null],
];
const CLIENTS: readonly (readonly [string, (on: Stage) => object])[] = [
  ['ServiceClient', ({ service }) => service],
  ['TrainingClient', (on) => on.trainer()],
  ['SamplingClient', (on) => on.sampler()],
  ['RestClient', ({ service }) => service.rest],
  ['AdminClient', ({ fake }) => new AdminClient(fake.clientOptions)],
];
/** Not calls of the service: the one is for other parts of the client, the others end it. */
const NOT_CALLS = new Set(['constructor', 'loading', 'weightsInfo', 'close', 'destroy']);

const methodsOf = (client: object): string[] =>
  Object.entries(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(client)))
    .filter(([name, { value }]) => typeof value === 'function' && !NOT_CALLS.has(name))
    .map(([name]) => name);

describe('a call with missing or wrong arguments threw a TypeError, or failed with one: it fails its future by name', () => {
  it.each(CLIENTS)('%s', (_, clientOf) => {
    const on = stage();
    const client = clientOf(on) as Record<string, (...values: readonly unknown[]) => Observable<unknown>>;
    const failures: string[] = [];
    for (const method of methodsOf(client)) {
      MISTAKES.forEach((values, at) => {
        const note = ({ code, message }: TinkerError): void => {
          if (code === 'unexpected' || code === undefined) failures.push(`${method} ${at}: ${message}`);
        };
        const future: Partial<Observable<unknown>> | undefined = client[method]!(...values);
        future?.subscribe?.({ error: note });
      });
    }
    on.clock.advanceBy(600_000);
    expect(failures).toEqual([]);
    expect(methodsOf(client).length).toBeGreaterThan(3);
  });

  it('new RestClient and new AdminClient', () => {
    for (const options of [null, 5, 'x']) {
      expect(() => new RestClient(options as never)).toThrow(ValidationError);
      expect(() => new AdminClient(options as never)).toThrow(ValidationError);
    }
  });
});

describe('an id that is empty or leads elsewhere was sent: deleting the checkpoint "" of a run asks to delete them all', () => {
  it.each(['', '.', '..', 'a/../b', 'a//b', '/a', 'a/'])('%j', (id) => {
    const on = stage();
    const { rest } = on.service;
    for (const call of [
      rest.deleteCheckpoint('run', id),
      rest.deleteCheckpoint(id, 'weights/a'),
      rest.getTrainingRun(id),
      rest.listCheckpoints(id),
      rest.getSession(id),
      rest.assignSessionProject(id, 'p'),
      rest.exportSessionTrace(id),
      rest.getSampler(id),
    ])
      expect(on.clock.reject(call as Observable<unknown>)).toMatchObject({ code: 'invalid_input' });
    expect(on.fake.requests).toEqual([]);
  });
});

describe('the options of close()', () => {
  it.each<[string, unknown]>([
    ['a misspelt name', { statsu: 'errored' }],
    ['a status that is none', { status: 'done' }],
    ['a detail that is no text', { detail: 7 }],
    ['a timeout that is none', { timeoutMs: NaN }],
    ['no object', null],
  ])('are refused instead of being dropped, and close nothing: %s', (_, options) => {
    const on = stage();
    on.sampler();
    for (const how of ['close', 'destroy'] as const) {
      expect(on.clock.reject(on.service[how](options as object))).toMatchObject({ code: 'invalid_input' });
      on.sampler();
    }
    on.clock.resolve(on.service.close());
    expect(on.eventsOf('session-finished').map(({ status }) => status)).toEqual(['success']);
  });
});

it('a transport that ends without an answer made calls succeed with nothing: they are tried again', () => {
  const on = stage({ script: { get_server_capabilities: [EMPTY, json({ supported_models: [] })] } });
  expect(on.clock.resolve(on.service.getServerCapabilities())).toEqual({ supportedModels: [] });
  const twice = stage({ script: { 'training_runs/run/checkpoints/weights/a': EMPTY } });
  expect(twice.clock.reject(twice.service.rest.deleteCheckpoint('run', 'weights/a'))).toMatchObject({
    code: 'connection',
    message: expect.stringContaining('without an answer') as string,
  });
});

describe('work that is refused with a 200 and an error', () => {
  it('fails with what the error says, and gives its number to the next call', () => {
    const on = stage({ script: { optim_step: [json({ error: { message: 'no such optimizer' }, category: 'user' })] } });
    const model = on.trainer();
    expect(on.clock.reject(model.optimStep())).toMatchObject({
      code: 'request_failed',
      category: 'user',
      message: 'no such optimizer',
    });
    on.clock.resolve(model.optimStep());
    expect(on.fake.to('optim_step').map(({ seqId }) => seqId)).toEqual([1, 1]);
  });

  it('names the path of a body that is neither, not the kind of work', () => {
    const on = stage({ script: { asample: json({ ok: true }) } });
    const error = on.clock.reject(on.sampler().sample({ prompt: prompt() })) as Error;
    expect(error.message).toMatch(/^\/api\/v1\/asample returned an unexpected body: request_id/);
  });
});

it('a trace that is ready and has no address is an error, and is not asked for again', () => {
  const on = stage({ script: { 'sessions/s/trace_export': json({ status: 'ready' }) } });
  expect(on.clock.reject(on.service.rest.exportSessionTrace('s'))).toMatchObject({ code: 'invalid_response' });
});

describe('a session that the service is not told the end of', () => {
  it('is a warning of its own, not reported as finished', () => {
    const on = stage({ script: { 'sessions/session-1/finish': refusal(403, 'not yours') } });
    on.sampler();
    on.clock.resolve(on.service.close());
    expect(on.eventsOf('session-finished')).toEqual([]);
    expect(on.eventsOf('session-unfinished').map(({ reason }) => reason)).toEqual([
      'POST /api/v1/sessions/session-1/finish: 403 not yours',
    ]);
  });
});
