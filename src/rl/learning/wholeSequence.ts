import type { Datum } from '../../wire/datum.js';
import type { ModelInput } from '../../wire/modelInput.js';
import type { TensorData } from '../../wire/tensor.js';

/** The sequence a datum was made of: its input, and the last token it predicts. */
export function wholeSequence({ modelInput, lossFnInputs }: Datum): ModelInput {
  return modelInput.appendInt((lossFnInputs['target_tokens'] as TensorData).data.at(-1)!);
}
