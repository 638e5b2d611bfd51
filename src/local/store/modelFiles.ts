import { decodeState, encodeState } from '../engine/files/checkpoint.js';
import type { ModelState } from '../engine/types.js';

const STATE_FILE = 'state.safetensors';

/** The one file of a training or sampler checkpoint. */
export const filesOfState = (state: ModelState): Map<string, Uint8Array> => new Map([[STATE_FILE, encodeState(state)]]);

/** The inverse of {@link filesOfState}. @throws Error for a checkpoint of another kind. */
export function stateOfFiles(files: ReadonlyMap<string, Uint8Array>): ModelState {
  const file = files.get(STATE_FILE);
  if (file === undefined) throw new Error(`the checkpoint has no ${STATE_FILE}`);
  return decodeState(file);
}
