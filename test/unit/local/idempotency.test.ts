import { expect, it } from 'vitest';
import { json } from '../../../src/local/http/reply.js';
import type { RequestContext } from '../../../src/local/http/requestContext.js';
import { Idempotency } from '../../../src/local/service/idempotency.js';

const contextOf = (key: string) => ({ endpoint: 'create_session', header: () => key }) as unknown as RequestContext;

it('a remembered answer keeps only its own bytes in memory', async () => {
  const idempotency = new Idempotency();
  const kept = new Set<ArrayBufferLike>();
  for (let index = 0; index < 200; index++) {
    // Others take their bytes from the pool, too, as requests and answers do.
    Buffer.from('x'.repeat(4000));
    const answer = json({ session_id: `session ${index}` });
    await idempotency.once(contextOf(`key ${index}`), () => Promise.resolve(answer));
    const again = await idempotency.once(contextOf(`key ${index}`), () => Promise.reject(new Error('done twice')));
    expect(again).toStrictEqual({ ...answer, body: again.body });
    expect(Buffer.from(again.body as Uint8Array).toString()).toBe(`{"session_id":"session ${index}"}`);
    kept.add((again.body as Uint8Array).buffer);
  }
  const bytes = [...kept].reduce((sum, { byteLength }) => sum + byteLength, 0);
  expect(bytes).toBeLessThan(200 * 100);
});
