/** Requests to the embedded service and files of its folder, mangled by a seed: no 5xx, no hang, no crash; good ones work after it. */
import { connect as openSocket } from 'node:net';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { Pool } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LocalTinker } from '../../src/local/index.js';
import { encodeForwardBackwardRequest } from '../../src/wire/index.js';
import { connect, type Json, type LocalCaller } from '../loopback/localCaller.js';
import { FakeEngine } from '../loopback/localFakeEngine.js';
import { datum, jsonDatum, sampleBody } from '../loopback/localFixture.js';
import { fuzz } from './support/Fuzzer.js';
import { Mutator } from './support/mutate.js';
import { Report } from './support/Report.js';

const TIMES = process.env['TINKER_RX_SUITE'] === 'long' ? 25 : 1;
const KEY = 'tml-fuzz';
const report = new Report('fuzz of the embedded service', ['inputs fuzzed', 'crashes', 'answers of 5xx']);
const mutator = new Mutator(81);
let folder: string;
let local: LocalTinker;
let pool: Pool;
let caller: LocalCaller;
let session: string;
let model: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tinker-rx-fuzz-'));
  local = await LocalTinker.start({ engine: new FakeEngine(), data: join(folder, 'data'), apiKey: KEY, pollHoldMs: 1 });
  caller = connect(local);
  pool = new Pool(local.url, { connections: 4 });
  session = await caller.createSession();
  model = await caller.createModel(session);
});
afterAll(async () => {
  await pool.close();
  await local.close();
  await rm(folder, { recursive: true, force: true });
  report.print();
});

const GRAPH = {
  format: 1,
  nodes: [
    { op: 'input', name: 'logprobs' },
    { op: 'sum', args: [0] },
  ],
};
const seeds = (): readonly (readonly [string, Json])[] => [
  ['client/config', { sdk_version: '0.36.0' }],
  ['create_session', { tags: ['a'], user_metadata: { a: 'b' }, sdk_version: '0.36.0', type: 'create_session' }],
  ['session_heartbeat', { session_id: session, type: 'session_heartbeat' }],
  [
    'create_model',
    { session_id: session, model_seq_id: 9, base_model: 'fake/model', lora_config: { rank: 2, seed: 1 } },
  ],
  ['get_info', { model_id: model, type: 'get_info' }],
  [
    'forward_backward',
    { model_id: model, seq_id: 1, forward_backward_input: { data: [jsonDatum()], loss_fn: 'cross_entropy' } },
  ],
  ['optim_step', { model_id: model, seq_id: 2, adam_params: { learning_rate: 1e-4 }, type: 'optim_step' }],
  ['save_weights', { model_id: model, path: 'a', seq_id: 3, type: 'save_weights' }],
  ['save_weights_for_sampler', { model_id: model, path: 'b', seq_id: 4 }],
  ['load_weights', { model_id: model, path: `tinker://${model}/weights/a`, seq_id: 5, optimizer: true }],
  ['create_sampling_session', { session_id: session, sampling_session_seq_id: 0, base_model: 'fake/model' }],
  ['asample', sampleBody({ sampling_session_id: 'x', seq_id: 0, topk_prompt_logprobs: 1, prompt_logprobs: true })],
  ['retrieve_future', { request_id: 'x', allow_metadata_only: true }],
  [
    'retrieve_futures',
    { target: { type: 'sampling_session', sampling_session_id: 'x', cloned_sampler_id: 0 }, prev_cursor: 0 },
  ],
  ['cancel_future', { request_id: 'x' }],
  [
    'create_custom_loss',
    { session_id: session, custom_loss_seq_id: 0, name: 'l', inputs: [{ name: 'logprobs', rank: 1 }], graph: GRAPH },
  ],
  ['sessions/search', { limit: 10, owner: { type: 'any' }, user_metadata: { a: 'b' }, statuses: [{ type: 'active' }] }],
  ['weights_info', { tinker_path: `tinker://${model}/weights/a` }],
  ['copy_weights', { source_path: `tinker://${model}/weights/a`, destination_project_id: 'p', ttl_seconds: 3600 }],
  ['telemetry', { events: [], platform: 'x', sdk_version: '0', session_id: session, process_uuid: 'u' }],
];

interface Sent {
  readonly path: string;
  readonly method: 'POST' | 'GET' | 'PUT' | 'DELETE';
  readonly body: Uint8Array | null;
  readonly headers: Record<string, string>;
}

async function send({ path, method, body, headers }: Sent): Promise<number> {
  const answer = await pool.request({
    ...{ path: `/api/v1/${path}`, method, body, headers: { 'x-api-key': KEY, ...headers } },
    ...{ headersTimeout: 1500, bodyTimeout: 1500 },
  });
  await answer.body.dump();
  if (answer.statusCode >= 500) {
    report.add('answers of 5xx', 1);
    throw new TypeError(`${method} ${path}: ${answer.statusCode}`);
  }
  return answer.statusCode;
}
const never = (): boolean => false;

describe('a request', () => {
  it('in JSON is carried out or refused', async () => {
    const input = (): Sent => {
      const [path, json] = mutator.pick(seeds());
      const text = Buffer.from(JSON.stringify(mutator.json(json)) ?? '');
      const bytes = mutator.below(4) === 0 ? mutator.bytes(text) : text;
      const zipped = mutator.below(8) === 0;
      return {
        ...{ path, method: 'POST', body: zipped ? gzipSync(bytes) : bytes },
        headers: { 'content-type': 'application/json', ...(zipped ? { 'content-encoding': 'gzip' } : {}) },
      };
    };
    await fuzz({ name: 'requests in JSON', input, read: send, refuses: never }, 1200 * TIMES, report);
  });

  it('in protobuf, packed or not, is carried out or refused', async () => {
    const request = { modelId: model, seqId: 6, data: [datum()], lossFn: 'cross_entropy', forwardOnly: false } as const;
    const seed = encodeForwardBackwardRequest(request);
    const input = (): Sent => {
      const bytes = mutator.bytes(seed);
      const zipped = mutator.below(4) === 0;
      return {
        ...{ path: 'forward_backward', method: 'POST', body: zipped ? mutator.bytes(gzipSync(bytes)) : bytes },
        headers: { 'content-type': 'application/x-protobuf', ...(zipped ? { 'content-encoding': 'gzip' } : {}) },
      };
    };
    await fuzz({ name: 'requests in protobuf', input, read: send, refuses: never }, 500 * TIMES, report);
  });

  it('for any path and query is carried out or refused', async () => {
    const paths = [
      ...[
        `training_runs/${model}`,
        `training_runs/${model}/checkpoints`,
        'checkpoints?limit=3&offset=1',
        'sessions?limit=2',
      ],
      ...[
        `sessions/${session}`,
        'samplers/x',
        `training_runs/${model}/checkpoints/weights/a/ttl`,
        'audit?day=2026-01-01',
      ],
      ...[
        'billing/usage/events?starting_on=2026-01-01T00:00:00Z&ending_before=2026-02-01T00:00:00Z',
        'files/a/b?token=c',
      ],
    ];
    const input = (): Sent => {
      const text = Buffer.from(mutator.bytes(Buffer.from(mutator.pick(paths)))).toString('latin1');
      const path = text.replace(/[^\x21-\x7e]/g, (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, '0')}`);
      const method = mutator.pick(['GET', 'GET', 'PUT', 'DELETE', 'POST'] as const);
      return { path, method, body: method === 'GET' ? null : Buffer.from('{}'), headers: {} };
    };
    await fuzz({ name: 'paths', input, read: send, refuses: never }, 500 * TIMES, report);
  });

  it('that is no HTTP is refused, and its connection ends', async () => {
    const head = `POST /api/v1/optim_step HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: ${KEY}\r\nContent-Length: 2\r\n\r\n{}`;
    const read = (bytes: Uint8Array): Promise<void> =>
      new Promise((resolve, reject) => {
        const socket = openSocket(Number(new URL(local.url).port), '127.0.0.1', () => socket.end(bytes));
        socket.on('data', (chunk) => {
          if (/^HTTP\/1.1 5(?!05)/.test(chunk.toString('latin1'))) reject(new TypeError(chunk.toString('latin1')));
        });
        socket.on('error', () => resolve());
        socket.on('close', () => resolve());
      });
    const input = (): Uint8Array => mutator.bytes(Buffer.from(head));
    await fuzz({ name: 'bytes on the socket', input, read, refuses: never }, 200 * TIMES, report);
  });

  it('that is good still works after all of them', async () => {
    const again = await caller.createModel(await caller.createSession());
    expect(await caller.future('optim_step', { model_id: again, seq_id: 1, adam_params: {} })).toHaveProperty(
      'metrics',
    );
  });
});

it('a data folder whose records and manifests are damaged is opened, or refused with a reason', async () => {
  const data = join(folder, 'old');
  const first = await LocalTinker.start({ engine: new FakeEngine(), data, apiKey: KEY });
  const client = connect(first);
  const id = await client.createModel(await client.createSession());
  await client.future('save_weights', { model_id: id, path: 'a', seq_id: 1, type: 'save_weights' });
  await first.close();
  const files = (await readdir(data, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && /\.jsonl?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
  expect(files.length).toBeGreaterThan(3);
  const broken = join(folder, 'broken');
  const read = async (index: number): Promise<void> => {
    await rm(broken, { recursive: true, force: true });
    await cp(data, broken, { recursive: true });
    const file = mutator.pick(files).replace(data, broken);
    const bytes = await readFile(file);
    const text = bytes.toString();
    const isJson = file.endsWith('.json') && index % 2 === 0;
    await writeFile(file, isJson ? (JSON.stringify(mutator.json(JSON.parse(text))) ?? '') : mutator.bytes(bytes));
    const opened = await LocalTinker.start({ engine: new FakeEngine(), data: broken, apiKey: KEY });
    try {
      const asking = connect(opened);
      for (const path of ['checkpoints', 'training_runs', 'sessions', `training_runs/${id}`, `sessions/x`]) {
        const { status } = await asking.fetch(path);
        if (status >= 500) throw new TypeError(`${path}: ${status} with ${file}`);
      }
    } finally {
      await opened.close();
    }
  };
  await fuzz({ name: 'data folders', input: (index) => index, read, refuses: never }, 40 * TIMES, report);
});
