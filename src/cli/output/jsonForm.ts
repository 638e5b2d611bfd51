import { Checkpoint, GetSessionResponse, SessionSummary, TrainingRun } from '../../wire/rest.js';
import { SupportedModel } from '../../wire/session.js';

// Scripts read what the Python command prints: every key is there, in its order, null if there is nothing to say.

type Json = Readonly<Record<string, unknown>>;

const complete = (keys: readonly string[], value: object): Json =>
  Object.fromEntries(keys.map((key) => [key, (value as Json)[key] ?? null]));

const CHECKPOINT = [
  ...['checkpoint_id', 'checkpoint_type', 'time', 'tinker_path'],
  ...['size_bytes', 'public', 'user_metadata', 'expires_at'],
];
/** `base_model` is newer than the recorded output: only where the service says it. */
export const checkpointJson = (checkpoint: Checkpoint): Json => ({
  ...complete(CHECKPOINT, Checkpoint.encode(checkpoint)),
  ...(checkpoint.baseModel === undefined ? {} : { base_model: checkpoint.baseModel }),
});

const RUN = [
  ...['training_run_id', 'base_model', 'model_owner', 'is_lora', 'corrupted', 'lora_rank', 'last_request_time'],
  ...['last_checkpoint', 'last_sampler_checkpoint', 'user_metadata'],
];
export function runJson(run: TrainingRun): Json {
  const { lastCheckpoint, lastSamplerCheckpoint } = run;
  return {
    ...complete(RUN, TrainingRun.encode(run)),
    ...(lastCheckpoint === undefined ? {} : { last_checkpoint: checkpointJson(lastCheckpoint) }),
    ...(lastSamplerCheckpoint === undefined ? {} : { last_sampler_checkpoint: checkpointJson(lastSamplerCheckpoint) }),
  };
}

const MODEL = ['model_name', 'max_context_length', 'trainable', 'sampleable'];
export const modelJson = (model: SupportedModel): Json => complete(MODEL, SupportedModel.encode(model));

const SESSION = ['training_run_ids', 'sampler_ids', 'user_metadata', 'display_name'];
export const sessionJson = (session: GetSessionResponse): Json => complete(SESSION, GetSessionResponse.encode(session));

const SUMMARY = [
  ...['session_id', 'created_at', 'owner', 'project_id', 'status', 'checkpoints_count', 'display_name'],
  ...['user_metadata', 'checkpoint_storage_bytes'],
];
export const summaryJson = (summary: SessionSummary): Json => complete(SUMMARY, SessionSummary.encode(summary));

const USAGE = [
  ...['bucket_start', 'bucket_end', 'base_model', 'user_id', 'user_name', 'session_id', 'project_id'],
  ...['estimated_cost_usd', 'effective_rate_usd_per_million_tokens', 'effective_rate_usd_per_gigabyte_month'],
  'event_info',
];
export const usageJson = (row: object): Json => complete(USAGE, row);

const STORAGE = [
  ...['project_id', 'org_user_urn', 'user_email', 'user_name'],
  ...['checkpoint_count', 'size_bytes', 'size_gigabytes', 'estimated_monthly_cost_usd'],
];
export const storageJson = (row: object): Json => complete(STORAGE, row);
