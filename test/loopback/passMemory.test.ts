import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ModelInput, ServiceClient, type Datum } from 'tinker-rx';
import { resolveBaseUrl } from '../../src/transport/baseUrl.js';
import { socketTransport } from '../../src/transport/socketTransport.js';
import { decodeForwardBackwardRequest } from '../../src/wire/proto/forwardBackwardRequest.js';

let server: Server;
let url: string;
let answer: (path: string, body: Buffer) => unknown;
/** Whether it answers before it has read the request. */
let early = false;

beforeEach(async () => {
  early = false;
  server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json');
    if (early) response.end('{}');
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (!early) response.end(JSON.stringify(answer(request.url!.replace('/api/v1/', ''), Buffer.concat(chunks))));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

describe('a large request', () => {
  const post = async (bytes: number) => {
    const sockets = socketTransport({ baseUrl: resolveBaseUrl(url, undefined), environment: {} });
    const request = { method: 'POST', path: '/', lane: 'training', headers: {}, timeoutMs: 10_000 } as const;
    try {
      return await firstValueFrom(sockets.transport({ ...request, body: new Uint8Array(bytes) }));
    } finally {
      await sockets.destroy();
    }
  };

  it('has left when a server answers that has read it: its memory may be used again', async () => {
    answer = (_, body) => ({ length: body.length });
    const response = await post(8_000_000);
    expect(JSON.parse(Buffer.from(response.body).toString())).toStrictEqual({ length: 8_000_000 });
    expect(response.requestLeft).toBe(true);
  });

  it('may not have left when a server answers at once, nor is it known of a small one', async () => {
    answer = () => ({});
    expect((await post(1000)).requestLeft).toBeUndefined();
    early = true;
    expect((await post(60_000_000)).requestLeft).toBeUndefined();
  });
});

it('passes that use the memory of those before them carry their own data, whole', async () => {
  const TOKENS = 2048;
  const seen: number[][] = [];
  let requests = 0;
  answer = (path, body) => {
    if (path === 'forward_backward') {
      const { data } = decodeForwardBackwardRequest(body);
      // The least and the greatest of all values of a chunk: both are what its pass is made of.
      const values = data.flatMap(({ modelInput, lossFnInputs }) => [
        ...modelInput.toInts(),
        ...lossFnInputs['target_tokens']!.data,
        ...lossFnInputs['weights']!.data,
      ]);
      seen.push([data.length, values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))]);
    }
    if (path === 'create_session') return { session_id: 's' };
    if (path !== 'retrieve_future') return { request_id: `${path}-${requests++}` };
    const { request_id } = JSON.parse(body.toString()) as { request_id: string };
    if (request_id.startsWith('create_model')) return { model_id: 'm' };
    return { loss_fn_output_type: 'x', loss_fn_outputs: [], metrics: { 'loss:sum': 1 } };
  };
  const service = new ServiceClient({ baseUrl: url, apiKey: 'tml-test', telemetry: false });
  const trainer = await service.createLoraTrainingClient({ baseModel: 'any', rank: 8 });
  const pass = (value: number, datums: number): Datum[] =>
    Array.from({ length: datums }, () => ({
      modelInput: ModelInput.fromInts(new Int32Array(TOKENS).fill(value)),
      lossFnInputs: {
        target_tokens: new Int32Array(TOKENS).fill(value),
        weights: new Float32Array(TOKENS).fill(value),
      },
    }));
  // 32 kB each: two chunks, then one, then two once more.
  for (const [value, datums] of [
    [1, 200],
    [2, 100],
    [3, 180],
  ] as const)
    await trainer.forwardBackward(pass(value, datums), 'cross_entropy');
  await service.close();
  for (const value of [1, 2, 3])
    expect(seen.filter(([, least, most]) => least === value && most === value)).not.toEqual([]);
  expect(seen.every(([, least, most]) => least === most)).toBe(true);
  expect(seen.reduce((sum, [datums]) => sum + datums!, 0)).toBe(480);
});
