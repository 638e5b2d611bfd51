export { getLr, type GetLrOptions } from './getLr.js';
export { loraParameterCount, type LoraParameterCountOptions } from './loraParameterCount.js';
export { MODEL_FACTS, modelFacts, type LoraParameters, type ModelFacts } from './modelFacts.js';
export { MODEL_RENDERERS, rendererFor, renderersFor } from './renderersFor.js';
