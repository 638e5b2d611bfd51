export { bitsPerByte, meanNll, type LossOutputs } from './batchMetrics.js';
export {
  datumFromExample,
  datumFromTokensWeights,
  type DatumOptions,
  type WeightedExample,
} from './datumFromExample.js';
export { datumFromSequence, datumsFromTurns, type SampledTurn, type TurnDatumOptions } from './datumsFromTurns.js';
export type { DecisionOptions } from './decisionRow.js';
export { formatDatum, type FormatDatumOptions } from './formatDatum.js';
export type { DecisionRenderer, LabelInput } from './labels.js';
export { packDatums, type PackOptions } from './packDatums.js';
export { reduceWeights, type WeightReduction } from './reduceWeights.js';
