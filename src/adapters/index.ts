/**
 * Adapters as files: a trained checkpoint as a PEFT adapter for vLLM, SGLang or PEFT, or merged into its base model, also as a GGUF file.
 *
 * @module tinker-rx/adapters
 */
import '../support/checkNode.js';
export { exportPeft, type ExportedPeft, type ExportPeftOptions } from './exportPeft.js';
export { exportGguf, type ExportedGguf, type ExportGgufOptions } from './exportGguf.js';
export { GGUF_TYPES, type GgufType } from './ggufFile.js';
export { mergeModel, type MergedModel, type MergeModelOptions } from './mergeModel.js';
export { SERVERS, type Server } from './servers.js';
