/**
 * The numeric part of the embedded service: transformers with LoRA adapters, their losses, AdamW and sampling, in threads behind promises.
 * The models are two small ones over bytes, and what `loadModel` is given: Llama, Qwen2 or Qwen3. The way of a call:
 *
 * 1. `engine.ts`: the front. Calls on one model take turns here; each becomes a message.
 * 2. `thread/`: `workerLink` posts the message and keeps the promise, `worker` receives it, `core` has the models and samplers.
 * 3. A pass goes to `training/trainingModel`: `lossInputs` checks the datums, `losses` gives loss and derivatives, `adamw` makes
 *    the step. Passes of all models take turns.
 * 4. A sample goes to `sampling/samplePool`, which decodes all requests together, a token each per round; `prefill` computes
 *    prompts, those that begin alike once; `chooseToken` draws.
 * 5. Both run `model/transformer` (a `layer` at a time, of `linear` and `attention`) with the adapter that `residentAdapter` has copied in.
 * 6. `numeric/`: the memory of all this (`heap`), the `ops` that work in it with WebAssembly kernels, and the `team` of threads that
 *    share each op.
 * 7. `thread/breathe`: a pass pauses every few milliseconds, so that samples and messages get their turn.
 *
 * `files/` writes states as safetensors and adapters as PEFT; `types.ts` and `errors.ts` are what crosses the thread.
 */
export { decodeState, encodeState, exportPeft } from './files/checkpoint.js';
export { Engine } from './engine.js';
export { EngineCancelledError, EngineClosedError, EngineUserError } from './errors.js';
export { decodeSafetensors, encodeSafetensors } from './files/safetensors.js';
export { decodeTokens, encodeText, END_TOKEN, SPECIAL } from './model/vocabulary.js';
export type { EngineDatum, LossFunction } from './types.js';
