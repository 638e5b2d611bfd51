import type { TypeOf } from 'io-ts';
import { SampleRequest } from '../../wire/index.js';
import type { RequestContext } from '../http/requestContext.js';

export type Sample = TypeOf<typeof SampleRequest>;

/** Quotes inside JSON text are escaped, so this finds the key only, and only where its number is too large to parse. */
const WIDE_SEQ_ID = /"seq_id"(\s*:\s*)(\d{16,19})(?!\d)/;

/**
 * The request of asample. Clones of a sampler count from 10⁹ times a random number of up to 10⁹: seq_ids beyond what a
 * JavaScript number holds, of which no digit may be lost.
 */
export function decodeSample(context: RequestContext): { readonly request: Sample; readonly seqId?: bigint } {
  const text = context.body.toString('utf8');
  const wide = WIDE_SEQ_ID.exec(text)?.[2];
  if (wide === undefined) {
    const request = context.decode(SampleRequest);
    return request.seqId === undefined ? { request } : { request, seqId: BigInt(request.seqId) };
  }
  const narrowed = context.withBody(Buffer.from(text.replace(WIDE_SEQ_ID, (_, colon: string) => `"seq_id"${colon}0`)));
  return { request: narrowed.decode(SampleRequest), seqId: BigInt(wide) };
}
