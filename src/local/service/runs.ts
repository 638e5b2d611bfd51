import type { ResolvedLora } from '../engine/types.js';
import type { OptimizerConfig, UserMetadata } from '../../wire/index.js';

/** A training run as it is kept on disk: the identity of a model, which outlives the model itself. */
export interface RunRecord {
  readonly version: 1;
  readonly runId: string;
  readonly sessionId: string;
  readonly baseModel: string;
  readonly lora: ResolvedLora;
  readonly optimizerConfig: OptimizerConfig;
  readonly userMetadata?: UserMetadata;
  readonly createdAt: string;
  readonly lastRequestAt: string;
}

export const isRunRecord = (value: unknown): value is RunRecord => {
  const record = value as Partial<RunRecord> | null;
  return record?.version === 1 && typeof record.runId === 'string' && typeof record.baseModel === 'string';
};
