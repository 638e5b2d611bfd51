import { describe, expect, it } from 'vitest';
import {
  decodeForwardBackwardRequest,
  encodeForwardBackwardRequest,
} from '../../src/wire/proto/forwardBackwardRequest.js';
import { fromBase64, readFixture, scenarios } from './support/fixture.js';
import { requestJson } from './support/protoMessage.js';

const bodies = scenarios().flatMap((scenario) =>
  readFixture(scenario).exchanges.flatMap(({ request: { body } }, index) =>
    body !== undefined && 'protobuf' in body ? [{ name: `${scenario} ${index}`, body }] : [],
  ),
);

/** A scalar has no shape on the wire, and neither has a list whose writer left it to the reader: read as a list. */
const isAmbiguous = (decoded: unknown): boolean => /"dtype":"\w+"\}/.test(JSON.stringify(decoded));

describe('forward-backward requests of the SDK', () => {
  it('are there', () => {
    expect(bodies.length).toBeGreaterThan(50);
  });

  for (const { name, body } of bodies) {
    it(`read as the SDK reads them: ${name}`, () => {
      expect(requestJson(fromBase64(body.protobuf))).toStrictEqual(body.decoded);
    });

    if (isAmbiguous(body.decoded)) continue;
    it(`come out the same after decoding and encoding: ${name}`, () => {
      const request = decodeForwardBackwardRequest(fromBase64(body.protobuf));
      expect(requestJson(encodeForwardBackwardRequest(request))).toStrictEqual(body.decoded);
    });
  }
});
