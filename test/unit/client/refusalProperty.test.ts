import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { statusError } from '../../../src/client/connection/failure.js';
import { SampleResponseJson } from '../../../src/wire/sampling.js';
import { ForwardBackwardOutputJson, OptimStepResponse } from '../../../src/wire/training.js';
import { decodeForwardBackwardOutput } from '../../../src/wire/proto/forwardBackwardOutput.js';
import { decodeSampleResponse } from '../../../src/wire/proto/sampleResponse.js';

/** JSON with the keys that are read, and with those that every object has. */
const key = fc.oneof(
  fc.constantFrom('detail', 'message', 'error', 'loc', 'msg', 'toString', '__proto__', 'constructor', 'data', 'dtype'),
  fc.constantFrom('sequences', 'tokens', 'topk_logprobs', 'loss_fn_outputs', 'logprobs', 'metrics', 'shape'),
  fc.string(),
);
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { maxDepth: 5 },
    fc.oneof(fc.string(), fc.double(), fc.boolean(), fc.constant(null), fc.constantFrom('float32', 'int64', 'stop')),
    fc.array(tie('json'), { maxLength: 4 }),
    fc.array(fc.tuple(key, tie('json')), { maxLength: 4 }).map((pairs) => Object.fromEntries(pairs)),
  ),
}));

describe('whatever a server sends', () => {
  it('a refusal is read, in one line without controls', () => {
    fc.assert(
      fc.property(json, fc.integer({ min: 300, max: 599 }), (body, status) => {
        const bytes = Buffer.from(JSON.stringify(body));
        const error = statusError(
          { status, headers: { 'content-type': 'application/json' }, body: bytes },
          'POST /x',
          0,
        );
        expect(error.status).toBe(status);
        expect(error.message).not.toMatch(/[\p{Cc}]/u);
        expect(error.message.length).toBeLessThan(700);
      }),
      { numRuns: 500 },
    );
  });

  it('a refusal of any bytes is read', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (body) => {
        expect(statusError({ status: 500, headers: {}, body }, 'POST /x', 0).code).toBe('server');
      }),
    );
  });

  it.each([SampleResponseJson, ForwardBackwardOutputJson, OptimStepResponse])('%o decodes or refuses', (codec) => {
    fc.assert(
      fc.property(json, (body) => {
        expect(['Left', 'Right']).toContain(codec.decode(body)._tag);
      }),
      { numRuns: 300 },
    );
  });

  it.each([decodeSampleResponse, decodeForwardBackwardOutput])(
    '%o gives a message or an Error, of any bytes',
    (decode) => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
          try {
            expect(decode(bytes)).toBeTypeOf('object');
          } catch (error) {
            expect(error).toBeInstanceOf(Error);
          }
        }),
        { numRuns: 500 },
      );
    },
  );
});
