import type { Reply } from './reply.js';
import type { RequestContext } from './requestContext.js';

/** A body whose version is known, so that parts of it can be asked for. */
export interface VersionedBody {
  readonly content: Uint8Array | { readonly file: string };
  readonly contentType: string;
  readonly sizeBytes: number;
  /** Of the whole body, in hexadecimal digits: the same bytes are the same version, wherever they lie. */
  readonly sha256: string;
}

/**
 * The body, or the part of it that `Range` asks for (RFC 9110, 13 and 14): 206 with that part, 416 if there are no such bytes,
 * 304 if the client has this version. A part is only sent of the version that `If-Range` names; several parts at once are not,
 * and get the whole.
 */
export function rangeReply(context: Pick<RequestContext, 'header'>, body: VersionedBody): Reply {
  const { content, contentType, sizeBytes, sha256 } = body;
  const etag = `"${sha256}"`;
  const validators = { etag, 'accept-ranges': 'bytes' };
  if (matchesAny(context.header('if-none-match'), etag)) return { status: 304, headers: validators, body: NOTHING };
  const headers = {
    ...validators,
    'content-type': contentType,
    'repr-digest': `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`,
  };
  const range = rangeOf(context, etag, sizeBytes);
  if (range === undefined) return { status: 200, headers, body: content };
  if (range === 'unsatisfiable') {
    return { status: 416, headers: { ...validators, 'content-range': `bytes */${sizeBytes}` }, body: NOTHING };
  }
  const [first, last] = range;
  return {
    status: 206,
    headers: { ...headers, 'content-range': `bytes ${first}-${last}/${sizeBytes}` },
    body: content instanceof Uint8Array ? content.subarray(first, last + 1) : { ...content, first, last },
  };
}

const NOTHING = new Uint8Array();

/** The first and the last byte that are asked for; undefined for all of them. */
function rangeOf(
  context: Pick<RequestContext, 'header'>,
  etag: string,
  sizeBytes: number,
): readonly [first: number, last: number] | 'unsatisfiable' | undefined {
  const condition = context.header('if-range');
  if (condition !== undefined && condition !== etag) return undefined;
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(context.header('range') ?? '') ?? [];
  if (from === '' && to === '') return undefined;
  // `bytes=-5` are the last five.
  const first = from === '' ? Math.max(0, sizeBytes - Number(to)) : Number(from);
  const last = from === '' || to === '' ? sizeBytes - 1 : Math.min(Number(to), sizeBytes - 1);
  // A range that ends before it begins is ignored.
  if (from !== '' && to !== '' && Number(to) < Number(from)) return undefined;
  return first > last ? 'unsatisfiable' : [first, last];
}

const matchesAny = (condition: string | undefined, etag: string): boolean =>
  condition !== undefined && (condition.trim() === '*' || condition.split(',').some((tag) => tag.trim() === etag));
