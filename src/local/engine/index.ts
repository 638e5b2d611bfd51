/**
 * The numeric heart of the embedded service: a small byte-level transformer with LoRA adapters, its losses, AdamW and
 * sampling, all in one worker thread behind promises.
 */
export { decodeState, encodeState, exportPeft } from './checkpoint.js';
export { Engine } from './engine.js';
export type { CreateModelOptions, CreateSamplerOptions, EngineOptions, ForwardBackwardOptions } from './engine.js';
export { EngineCancelledError, EngineClosedError, EngineUserError } from './errors.js';
export { decodeSafetensors, encodeSafetensors } from './safetensors.js';
export type { SafetensorsDtype, SafetensorsFile } from './safetensors.js';
export { decodeTokens, encodeText, END_TOKEN, SPECIAL, SPECIAL_NAMES, VOCABULARY_SIZE } from './vocabulary.js';
export type {
  AdamOptions,
  BaseModelInfo,
  EngineDatum,
  EngineTensor,
  ForwardBackwardResult,
  LoraOptions,
  LossConfig,
  LossFunction,
  LossName,
  LossResult,
  ModelState,
  NamedTensor,
  ResolvedLora,
  SampledTokens,
  SampleRequest,
  SampleResult,
  TopkTable,
} from './types.js';
