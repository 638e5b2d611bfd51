import { describe, expect, it } from 'vitest';
import { dropped, refusal, text, type Reply } from 'tinker-rx/testing';
import { datum, stage } from './stage.js';

type Sent = 'protobuf' | 'json';
const formats = (on: ReturnType<typeof stage>): Sent[] =>
  on.fake.to('forward_backward').map(({ body }) => (body instanceof Uint8Array ? 'protobuf' : 'json'));
const pass = (on: ReturnType<typeof stage>, model = on.trainer()) =>
  on.clock.resolve(model.forwardBackward([datum()], 'cross_entropy'));
const isProtobuf = ({ body }: { body: unknown }): boolean => body instanceof Uint8Array;
/** A server that answers protobuf so and takes JSON. */
const refusing = (reply: Reply) =>
  stage({ script: { forward_backward: (request) => (isProtobuf(request) ? (reply as never) : undefined) } });

describe('what a service speaks', () => {
  it.each([
    ['415', refusal(415)],
    ['422', refusal(422, 'Input should be a valid dictionary')],
    ['500 in plain text', text(500, 'Internal Server Error')],
    ['502 of a proxy', text(502, '<html>', { 'content-type': 'text/html' })],
  ])('is JSON when it answers protobuf with %s: the same turn goes out as JSON at once', (_, reply) => {
    const on = refusing(reply);
    const model = on.trainer();
    expect(pass(on, model).metrics).toEqual({ 'loss:sum': 3 });
    expect(formats(on)).toEqual(['protobuf', 'json']);
    expect(on.fake.to('forward_backward').map(({ seqId }) => seqId)).toEqual([1, 1]);
    expect(on.clock.now()).toBe(0);
    pass(on, model);
    expect(formats(on)).toEqual(['protobuf', 'json', 'json']);
    expect(on.eventsOf('protocol-chosen').map(({ format }) => format)).toEqual(['json']);
  });

  it('is remembered for all models of the service', () => {
    const on = refusing(refusal(415));
    pass(on, on.trainer());
    pass(on, on.trainer());
    expect(formats(on)).toEqual(['protobuf', 'json', 'json']);
  });

  it('stays protobuf once it has accepted that, whatever it answers later', () => {
    const on = stage({
      script: {
        forward_backward: [(): undefined => undefined, text(500, 'Internal Server Error'), text(502, '<html>')],
      },
    });
    const model = on.trainer();
    pass(on, model);
    pass(on, model);
    expect(formats(on)).toEqual(['protobuf', 'protobuf', 'protobuf', 'protobuf']);
    expect(on.clock.now()).toBe(3000);
  });

  it('is not in doubt when it refuses in JSON for another reason', () => {
    const on = stage({ script: { forward_backward: [refusal(503, 'overloaded'), refusal(429)] } });
    pass(on);
    expect(formats(on)).toEqual(['protobuf', 'protobuf', 'protobuf']);
  });

  it('is not decided by an outage: when JSON fails, too, both are tried again', () => {
    const on = stage({ script: { forward_backward: [text(503, 'down'), text(503, 'down')] } });
    pass(on);
    expect(formats(on)).toEqual(['protobuf', 'json', 'protobuf']);
    expect(on.eventsOf('protocol-chosen').map(({ format }) => format)).toEqual(['protobuf']);
  });

  it('is not given up for one 502 on the first pass: the 422 to JSON is not final', () => {
    const on = stage({
      script: {
        forward_backward: [text(502, '<html>', { 'content-type': 'text/html' }), refusal(422, 'no JSON here')],
      },
    });
    expect(pass(on).metrics).toEqual({ 'loss:sum': 3 });
    expect(formats(on)).toEqual(['protobuf', 'json', 'protobuf']);
    expect(on.eventsOf('request-retry').map(({ error }) => error.code)).toEqual(['server']);
    expect(on.eventsOf('protocol-chosen').map(({ format }) => format)).toEqual(['protobuf']);
  });

  it('gives what it says to JSON when it answers protobuf with 500 three times: SkyRL refuses a bad datum so', () => {
    const on = stage({
      script: { forward_backward: (request) => (isProtobuf(request) ? text(500) : refusal(422, 'bad datum')) },
    });
    expect(on.clock.reject(on.trainer().forwardBackward([datum()], 'cross_entropy'))).toMatchObject({
      code: 'unprocessable',
      message: 'POST /api/v1/forward_backward: 422 bad datum',
    });
    expect(formats(on)).toEqual(['protobuf', 'json', 'protobuf', 'json', 'protobuf', 'json']);
    expect(on.clock.now()).toBe(3000);
  });

  it('gives the error of the JSON try when that is refused as well', () => {
    const on = stage({ script: { forward_backward: refusal(422, 'bad datum') } });
    expect(on.clock.reject(on.trainer().forwardBackward([datum()], 'cross_entropy'))).toMatchObject({
      code: 'unprocessable',
      message: 'POST /api/v1/forward_backward: 422 bad datum',
    });
    expect(formats(on)).toEqual(['protobuf', 'json']);
  });

  it('keeps one key for protobuf and one for JSON through all tries', () => {
    const on = stage({ script: { forward_backward: [text(500), text(500), text(500), dropped()] } });
    pass(on);
    const keys = on.fake
      .to('forward_backward')
      .map(({ headers, body }) => `${isProtobuf({ body })} ${headers['x-idempotency-key']}`);
    expect(new Set(keys).size).toBe(2);
    expect(keys).toHaveLength(5);
  });

  it('is told by the content type', () => {
    const on = refusing(refusal(415));
    pass(on);
    expect(on.fake.to('forward_backward').map(({ headers }) => headers['content-type'])).toEqual([
      'application/x-protobuf',
      'application/json',
    ]);
  });
});
