/**
 * Servers that close a connection a moment after an error. The answers are written by hand after a run of SkyRL 0.3.0 under uvicorn: it
 * answers protobuf with 500 `text/plain`, with a length and without `connection: close`, reads nothing more on that connection, and
 * closes it up to a second later.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { ModelInput, ServiceClient, type Datum, type TinkerEvent } from 'tinker-rx';
import { FakeService, reply, reset, type Answer, type Hit } from './support/fakeService.js';
import { hurry } from './support/hurry.js';

const PROTOBUF = 'application/x-protobuf';
const JSON_TYPE = 'application/json';
const TEXT = 'Internal Server Error';
const RESULT = {
  loss_fn_output_type: 'scalar',
  loss_fn_outputs: [{ logprobs: { data: [-1], dtype: 'float32', shape: [1] } }],
  metrics: {},
};
const datum: Datum = {
  modelInput: ModelInput.fromInts([300]),
  lossFnInputs: { target_tokens: [301], weights: [1] },
};

let fake: FakeService;
let service: ServiceClient;
const events: TinkerEvent[] = [];
afterEach(async () => {
  await service.destroy();
  await fake.close();
});

interface Manner {
  /** How long after the 500 the connection is closed. */
  readonly closesAfterMs: number;
  /** Whether the 500 says how long it is. */
  readonly hasLength: boolean;
  /** What becomes of JSON. */
  readonly json: Answer;
}

async function start({ closesAfterMs, hasLength, json }: Manner): Promise<void> {
  const doomed = new Set<Socket>();
  const fail = (response: ServerResponse, { socket }: IncomingMessage): void => {
    doomed.add(socket);
    response.writeHead(500, { 'content-type': 'text/plain', ...(hasLength ? { 'content-length': TEXT.length } : {}) });
    const close = (): void => socket.destroySoon();
    response.end(TEXT, () => (closesAfterMs === 0 ? close() : setTimeout(close, closesAfterMs)));
  };
  const pass: Answer = (response, hit, request) => {
    if (doomed.has(request.socket)) return;
    if (hit.headers['content-type'] === PROTOBUF) fail(response, request);
    else json(response, hit, request);
  };
  fake = await FakeService.start({
    forward_backward: pass,
    retrieve_future: (response, hit, request) =>
      reply(hit.json['request_id'] === 'create' ? { model_id: 'model' } : RESULT)(response, hit, request),
  });
  service = new ServiceClient({
    ...{ baseUrl: fake.url, apiKey: 'tml-x', telemetry: false, logLevel: 'silent', scheduler: hurry(20) },
  });
  events.length = 0;
  service.events$.subscribe((event) => events.push(event));
}

const accept = reply({ request_id: 'pass' });
/** Closes the connection unanswered so many times, then accepts. */
const afterResets = (times: number): Answer => {
  let left = times;
  return (...seen) => (left-- > 0 ? reset(...seen) : accept(...seen));
};
const passes = (): Hit[] => fake.hitsOf('forward_backward');
const formats = (): unknown[] => passes().map(({ headers }) => headers['content-type']);
const chosen = (): unknown[] => events.filter(({ type }) => type === 'protocol-chosen');
const train = async (count: number): Promise<void> => {
  const trainer = await service.createLoraTrainingClient({ baseModel: 'm' });
  for (let at = 0; at < count; at++) {
    const { lossFnOutputs } = await trainer.forwardBackward([datum], 'cross_entropy');
    expect(lossFnOutputs).toHaveLength(1);
  }
};

describe.each([0, 5, 700])(
  'a server that answers protobuf with a 500 and closes that connection after %i ms',
  (closesAfterMs) => {
    it('gets the same pass as JSON on another connection, and JSON from then on', async () => {
      await start({ closesAfterMs, hasLength: true, json: accept });
      await train(2);
      expect(formats()).toEqual([PROTOBUF, JSON_TYPE, JSON_TYPE]);
      expect(
        passes()
          .slice(1)
          .map(({ json }) => json['seq_id']),
      ).toEqual([1, 2]);
      expect(chosen()).toMatchObject([{ format: 'json', reason: 'the service answered 500 to protobuf' }]);
      expect(events.filter(({ type }) => type === 'request-retry')).toEqual([]);
    });

    it('gets JSON again, not protobuf, where the JSON request was not answered', async () => {
      await start({ closesAfterMs, hasLength: true, json: afterResets(3) });
      await train(1);
      expect(formats()).toEqual([PROTOBUF, JSON_TYPE, JSON_TYPE, JSON_TYPE, JSON_TYPE]);
      const json = passes().slice(1);
      expect(json.map((hit) => hit.json['seq_id'])).toEqual([1, 1, 1, 1]);
      expect(new Set(json.map(({ headers }) => headers['x-idempotency-key'])).size).toBe(1);
      // The first goes out at once, the others wait.
      expect(events.filter(({ type }) => type === 'request-retry')).toMatchObject([
        { delayMs: 0 },
        { delayMs: 1000 },
        { delayMs: 2000 },
      ]);
      expect(chosen()).toMatchObject([{ format: 'json' }]);
    });

    it('whose 500 is of unknown length gets protobuf once, and a handful of requests', async () => {
      await start({ closesAfterMs, hasLength: false, json: accept });
      await train(1);
      expect(formats().slice(0, 2)).toEqual([PROTOBUF, JSON_TYPE]);
      expect(formats().filter((format) => format === PROTOBUF)).toHaveLength(1);
      expect(formats().length).toBeLessThanOrEqual(3);
      expect(chosen()).toMatchObject([{ format: 'json' }]);
    });
  },
);
