import type { FutureResult } from '../queue/localFuture.js';
import { jsonOf } from './encodeResult.js';

/** A result as SkyRL writes it. */
export function skyrlResult(result: FutureResult): object {
  return jsonOf(result);
}
