/**
 * Adapters as files: a trained checkpoint as a PEFT adapter for vLLM, SGLang or PEFT, or merged into its base model.
 *
 * @module tinker-rx/adapters
 */
export { exportPeft, type ExportedPeft, type ExportPeftOptions } from './exportPeft.js';
export { mergeModel, type MergedModel, type MergeModelOptions } from './mergeModel.js';
export { SERVERS, type Server } from './servers.js';
