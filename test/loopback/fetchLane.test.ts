import { firstValueFrom } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { resolveBaseUrl } from '../../src/transport/baseUrl.js';
import { FetchLane } from '../../src/transport/fetchLane.js';
import type { TransportRequest, TransportResponse } from '../../src/transport/Transport.js';
import { FakeService, halfBody, reply, type Answer } from './support/fakeService.js';

let fake: FakeService;
let lane: FetchLane;

async function start(answer: Answer): Promise<void> {
  fake = await FakeService.start({ x: answer });
  lane = new FetchLane(resolveBaseUrl(fake.url, undefined), 1000);
}
afterEach(async () => {
  await lane.destroy();
  await fake.close();
});

const request = (more: Partial<TransportRequest> = {}): TransportRequest => ({
  method: 'POST',
  path: '/api/v1/x',
  lane: 'rest',
  headers: { 'content-type': 'application/json', 'x-a': 'b' },
  body: '{"a":1}',
  timeoutMs: 5000,
  ...more,
});
const ask = (more: Partial<TransportRequest> = {}): Promise<TransportResponse> =>
  firstValueFrom(lane.send(request(more)));

describe('a lane over fetch', () => {
  it('carries a request and its whole answer, whatever the status', async () => {
    await start(reply({ detail: 'no' }, 503, { 'retry-after': '3' }));
    const { status, headers, body } = await ask();
    expect([status, headers['retry-after'], Buffer.from(body).toString()]).toEqual([503, '3', '{"detail":"no"}']);
    expect(fake.hits[0]).toMatchObject({ json: { a: 1 }, headers: { 'x-a': 'b' } });
  });

  it('closes the connection of a request that is cancelled', async () => {
    let closed = false;
    await start((response) => response.on('close', () => (closed = true)));
    const subscription = lane.send(request()).subscribe();
    await expect.poll(() => fake.hits.length).toBe(1);
    subscription.unsubscribe();
    await expect.poll(() => closed).toBe(true);
  });

  it('refuses an answer that is too large, and one that is cut', async () => {
    await start((response) => response.writeHead(200).end('x'.repeat(2000)));
    await expect(ask()).rejects.toMatchObject({ kind: 'answer' });
    fake.answers['x'] = halfBody;
    await expect(ask()).rejects.toMatchObject({ name: 'TransportFailure' });
  });

  it('fails what is in flight when it is destroyed, and waits for it when it is closed', async () => {
    await start(() => undefined);
    const waiting = expect(ask()).rejects.toMatchObject({ kind: 'connection', message: 'the client is destroyed' });
    await expect.poll(() => fake.hits.length).toBe(1);
    const closing = lane.close();
    await lane.destroy();
    await Promise.all([waiting, closing]);
  });

  it('sends nothing that a header cannot carry', async () => {
    await start(reply({}));
    await expect(ask({ headers: { x: 'two\nlines' } })).rejects.toMatchObject({ kind: 'request' });
    expect(fake.hits).toEqual([]);
  });
});
