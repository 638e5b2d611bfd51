/** Below this a body is parsed in a moment, whatever it holds. */
const SMALL_BYTES = 65_536;
const [QUOTE, COMMA, OPEN_LIST, BACKSLASH, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = Buffer.from('",[\\]{}');

/** How deep JSON is nested at most, and how many lists and objects and how many values it has, about. */
export interface JsonShape {
  readonly depth: number;
  readonly containers: number;
  readonly values: number;
}

/**
 * What makes JSON slow to parse, found by looking at its bytes: millions of brackets take seconds, a long text or an image of
 * the same size takes a moment. Looks no further than `most`. Undefined for a small body.
 */
export function jsonShape(body: Uint8Array, most: Partial<JsonShape>): JsonShape | undefined {
  if (body.length <= SMALL_BYTES) return undefined;
  let [open, depth, containers, values] = [0, 0, 0, 0];
  let inText = false;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at];
    if (inText) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) inText = false;
    } else if (byte === QUOTE) inText = true;
    else if (byte === COMMA) values++;
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) open--;
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      containers++;
      depth = Math.max(depth, ++open);
      if (depth > (most.depth ?? Infinity) || containers > (most.containers ?? Infinity)) break;
    }
  }
  return { depth, containers, values };
}
