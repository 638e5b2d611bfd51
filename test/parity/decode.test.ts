import { describe, expect, it } from 'vitest';
import { combineOutputs } from '../../src/wire/combineOutputs.js';
import {
  decodeForwardBackwardOutput,
  encodeForwardBackwardOutput,
} from '../../src/wire/proto/forwardBackwardOutput.js';
import { decodeSampleResponse, encodeSampleResponse } from '../../src/wire/proto/sampleResponse.js';
import { fromBase64, readDecodeCases, type DecodeCase, type Json } from './support/fixture.js';
import { plain, toNumber } from './support/plain.js';

const bytes = (row: DecodeCase): Uint8Array => fromBase64(row.protobuf ?? '');

describe('samples', () => {
  for (const row of readDecodeCases('samples')) {
    it(`decodes as the SDK does: ${row.case}`, () => {
      if (row.error !== undefined) expect(() => decodeSampleResponse(bytes(row))).toThrow();
      else expect(plain(decodeSampleResponse(bytes(row)))).toStrictEqual(row.value);
    });
    if (row.error === undefined) {
      it(`survives encoding: ${row.case}`, () => {
        expect(plain(decodeSampleResponse(encodeSampleResponse(decodeSampleResponse(bytes(row)))))).toStrictEqual(
          row.value,
        );
      });
    }
  }
});

describe('training outputs', () => {
  for (const row of readDecodeCases('outputs')) {
    it(`decodes as the SDK does: ${row.case}`, () => {
      if (row.error !== undefined) expect(() => decodeForwardBackwardOutput(bytes(row))).toThrow();
      else expect(plain(decodeForwardBackwardOutput(bytes(row)))).toStrictEqual(row.value);
    });
    if (row.error === undefined) {
      it(`survives encoding: ${row.case}`, () => {
        const decoded = decodeForwardBackwardOutput(bytes(row));
        expect(plain(decodeForwardBackwardOutput(encodeForwardBackwardOutput(decoded)))).toStrictEqual(row.value);
      });
    }
  }
});

/** Cases where this library gives a number or drops a key, while the SDK fails or overwrites what the server said. */
const OWN_ANSWERS: Readonly<Record<string, Json>> = {
  // Nothing to join: the server's own numbers. The SDK reduces a single chunk too, which makes every slack zero.
  'one chunk': { 'cycle:unique': 3, 'lag:slack': 2, 'loss:mean': 0.75, 'loss:sum': 1.5 },
  'no outputs at all': { 'loss:mean': { $number: 'NaN' } },
  'no reduction in the name': {},
  'two colons': { 'a:b:sum': 3 },
};

describe('metrics of chunks', () => {
  for (const row of readDecodeCases('metrics')) {
    it(`are joined as the SDK does: ${row.case}`, () => {
      const outputs = (row.chunks ?? []).map((chunk) => ({
        lossFnOutputType: 'ArrayRecord',
        lossFnOutputs: Array.from({ length: chunk.outputs }, () => ({})),
        metrics: Object.fromEntries(Object.entries(chunk.metrics).map(([key, value]) => [key, toNumber(value)])),
      }));
      const expected = (OWN_ANSWERS[row.case] ?? row.value) as Readonly<Record<string, Json>>;
      const { metrics } = combineOutputs(outputs);
      expect(Object.keys(metrics).sort()).toStrictEqual(Object.keys(expected).sort());
      for (const [key, value] of Object.entries(expected)) {
        const wanted = toNumber(value);
        if (Number.isFinite(wanted)) expect(metrics[key]).toBeCloseTo(wanted, 12);
        else expect(metrics[key]).toBe(wanted);
      }
    });
  }
});
