import { ValidationError } from './tinkerError.js';

/** `training` (weights and optimizer), `sampler` (weights to sample from) or `external` (for use outside the service). */
export type CheckpointType = 'training' | 'sampler' | 'external';

const TYPE_BY_FOLDER: Readonly<Record<string, CheckpointType>> = {
  weights: 'training',
  sampler_weights: 'sampler',
  external_weights: 'external',
};

/** The parts of a `tinker://` path. The path itself is kept as it was given. */
export interface TinkerPath {
  /** The whole path, as given. */
  readonly path: string;
  /** The id of the training run that saved it. */
  readonly trainingRunId: string;
  /** Absent in the short form `tinker://run/name` that some servers answer. */
  readonly checkpointType?: CheckpointType;
  /** `weights/name`, as REST paths want it; just `name` in the short form. */
  readonly checkpointId: string;
}

const PATH = /^(?!https?:|file:)([a-z][a-z0-9+.-]*):\/\/(.*)$/i;

/** Whether a text is the path of a checkpoint: `tinker://…`, or another server's scheme such as `twinkle://…`. */
export const isCheckpointPath = (text: unknown): boolean => typeof text === 'string' && PATH.test(text);

/**
 * Splits a `tinker://` path into its parts. Of another server's path only the run is known: what follows is the checkpoint.
 *
 * @throws ValidationError when the text is no checkpoint path.
 */
export function parseTinkerPath(path: string): TinkerPath {
  const text = typeof path === 'string' ? path : '';
  const [, scheme, parts = ''] = PATH.exec(text) ?? [];
  const segments = parts.split('/');
  const [run, folder, name, ...rest] = segments;
  const isSegment = (part: string | undefined): part is string =>
    part !== undefined && part !== '' && part !== '.' && part !== '..';
  if (isSegment(run) && isSegment(folder) && rest.length === 0) {
    if (name === undefined) return { path, trainingRunId: run, checkpointId: folder };
    const checkpointType = TYPE_BY_FOLDER[folder];
    if (checkpointType !== undefined && isSegment(name)) {
      return { path, trainingRunId: run, checkpointType, checkpointId: `${folder}/${name}` };
    }
  }
  if (scheme !== undefined && scheme !== 'tinker' && isSegment(run) && isSegment(folder) && segments.every(isSegment))
    return { path, trainingRunId: run, checkpointId: parts.slice(run.length + 1) };
  throw new ValidationError(
    `not a checkpoint path: expected tinker://run/{weights|sampler_weights|external_weights}/name, got ${JSON.stringify(text.slice(0, 200))}`,
  );
}
