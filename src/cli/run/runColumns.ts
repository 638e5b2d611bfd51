import type { TrainingRun } from '../../wire/rest.js';
import { when } from '../output/format.js';

export interface RunColumn {
  readonly header: string;
  readonly about: string;
  readonly cell: (run: TrainingRun, nowMs: number) => string;
}

const lora = ({ isLora, loraRank }: TrainingRun): string =>
  isLora ? (loraRank === undefined || loraRank === 0 ? 'Yes' : `Rank ${loraRank}`) : 'No';

/** The columns of `run list`, by the names that `--columns` takes. */
export const RUN_COLUMNS: Readonly<Record<string, RunColumn>> = {
  id: { header: 'Run ID', about: 'training run ID', cell: (run) => run.trainingRunId },
  model: { header: 'Base Model', about: 'base model name', cell: (run) => run.baseModel },
  owner: { header: 'Owner', about: 'model owner', cell: (run) => run.modelOwner },
  lora: { header: 'LoRA', about: 'LoRA status and rank', cell: lora },
  updated: { header: 'Last Update', about: 'last request', cell: (run, now) => when(run.lastRequestTime, now) },
  status: { header: 'Status', about: 'OK or Failed', cell: (run) => (run.corrupted ? 'Failed' : 'OK') },
  checkpoint: {
    header: 'Last Checkpoint',
    about: 'newest training checkpoint',
    cell: (run) => run.lastCheckpoint?.checkpointId ?? 'None',
  },
  checkpoint_time: {
    header: 'Checkpoint Time',
    about: 'when that was saved',
    cell: (run, now) => when(run.lastCheckpoint?.time, now),
  },
};
export const DEFAULT_RUN_COLUMNS = ['id', 'model', 'lora', 'updated', 'status'];
