export {
  getLr,
  type GetLrOptions,
  loraParameterCount,
  type LoraParameterCountOptions,
  MODEL_FACTS,
  modelFacts,
  type LoraParameters,
  type ModelFacts,
  MODEL_RENDERERS,
  rendererFor,
  renderersFor,
} from './modelFacts.js';
