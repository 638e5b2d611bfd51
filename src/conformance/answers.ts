import type { Either } from 'fp-ts/lib/Either.js';
import { plainLine } from '../support/plainText.js';
import { parseJson } from '../support/parseJson.js';

export type Json = Readonly<Record<string, unknown>>;

/** A server that said no, in its own words. */
export class Refused extends Error {
  override readonly name = 'Refused';

  constructor(
    readonly status: number,
    readonly json: Json,
  ) {
    super((status >= 300 ? `${status} ${wordsOf(json)}` : wordsOf(json)).trim());
  }
}

const LONGEST = 100;

function wordsOf({ detail, error }: Json): string {
  const said = error ?? detail;
  if (Array.isArray(said)) return plainLine(said.map(complaint).join('; '), LONGEST);
  const text = typeof said === 'string' ? said : said === undefined ? '' : JSON.stringify(said);
  return plainLine(text, LONGEST);
}

/** One entry of FastAPI's list of complaints. */
function complaint(entry: unknown): string {
  const { loc, msg } = (entry ?? {}) as { readonly loc?: unknown; readonly msg?: unknown };
  const where = Array.isArray(loc) ? loc.filter((part) => part !== 'body').join('.') : '';
  return typeof msg === 'string' ? `${where}: ${msg}` : JSON.stringify(entry);
}

export const isRefusal = (json: Json): boolean => json['error'] !== undefined && json['error'] !== null;

/** A body as JSON; nothing if it is something else. */
export function asText(body: Uint8Array): Json {
  const value = parseJson(new TextDecoder().decode(body));
  return typeof value === 'object' && value !== null ? (value as Json) : {};
}

export function valueOf<A>(decoded: Either<unknown, A>): A {
  if (decoded._tag === 'Left') throw new Refused(200, { detail: 'the result is not as the protocol has it' });
  return decoded.right;
}
