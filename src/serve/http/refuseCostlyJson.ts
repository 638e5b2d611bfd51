import { GatewayError } from './GatewayError.js';

/** Below this a body is parsed in a moment, whatever it holds. */
const SMALL_BYTES = 65_536;
const MOST_CONTAINERS = 65_536;
const MOST_VALUES = 1_000_000;
const MOST_DEPTH = 256;

const [QUOTE, COMMA, OPEN_LIST, BACKSLASH, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = Buffer.from('",[\\]{}');

/**
 * Refuses JSON that takes long to parse, by looking at its bytes: millions of brackets take seconds, a long text or an
 * image of the same size takes a moment.
 *
 * @throws GatewayError 413
 */
export function refuseCostlyJson(body: Uint8Array): void {
  if (body.length <= SMALL_BYTES) return;
  let depth = 0;
  let containers = 0;
  let values = 0;
  let inText = false;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at];
    if (inText) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) inText = false;
    } else if (byte === QUOTE) inText = true;
    else if (byte === COMMA) values++;
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--;
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      containers++;
      if (++depth > MOST_DEPTH || containers > MOST_CONTAINERS) break;
    }
  }
  if (depth > MOST_DEPTH) throw new GatewayError(413, `the body is nested more than ${MOST_DEPTH} levels deep`);
  if (containers > MOST_CONTAINERS || values > MOST_VALUES) {
    throw new GatewayError(413, `the body has more than ${MOST_CONTAINERS} lists and objects or ${MOST_VALUES} values`);
  }
}
