/**
 * The numeric heart of the embedded service: a small byte-level transformer with LoRA adapters, its losses, AdamW and
 * sampling, all in one worker thread behind promises.
 */
export { decodeState, encodeState, exportPeft } from './files/checkpoint.js';
export { Engine } from './engine.js';
export { EngineCancelledError, EngineClosedError, EngineUserError } from './errors.js';
export { decodeSafetensors, encodeSafetensors } from './files/safetensors.js';
export { decodeTokens, encodeText, END_TOKEN, SPECIAL } from './model/vocabulary.js';
export type { EngineDatum, LossFunction } from './types.js';
