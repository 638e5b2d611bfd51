import type { ResolvedLora } from '../engine/types.js';
import type { CheckpointType, OptimizerConfig, UserMetadata } from '../../wire/index.js';

/** One file of a checkpoint. `stored` is its name on disk: unique, so that new content never overwrites old. */
export interface ManifestFile {
  readonly name: string;
  readonly stored: string;
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** What is in the weights of a checkpoint: enough to make a model that fits them. */
export interface WeightsInfo {
  readonly baseModel: string;
  readonly lora: ResolvedLora;
  readonly optimizerConfig: OptimizerConfig;
  readonly step: number;
  readonly hasOptimizer: boolean;
}

/**
 * A checkpoint as it lies on disk. The manifest is written last and replaced whole: a checkpoint exists if and only if
 * its manifest does, and its files are those the manifest names.
 */
export interface Manifest extends WeightsInfo {
  readonly version: 1;
  readonly runId: string;
  readonly type: CheckpointType;
  readonly name: string;
  readonly createdAt: string;
  readonly public: boolean;
  readonly expiresAt?: string;
  readonly userMetadata?: UserMetadata;
  readonly files: readonly ManifestFile[];
}

export const FOLDER_BY_TYPE: Readonly<Record<CheckpointType, string>> = {
  training: 'weights',
  sampler: 'sampler_weights',
  external: 'external_weights',
};

export const checkpointId = ({ type, name }: Pick<Manifest, 'type' | 'name'>): string =>
  `${FOLDER_BY_TYPE[type]}/${name}`;
export const tinkerPath = (manifest: Pick<Manifest, 'runId' | 'type' | 'name'>): string =>
  `tinker://${manifest.runId}/${checkpointId(manifest)}`;
export const sizeBytes = ({ files }: Manifest): number => files.reduce((sum, file) => sum + file.sizeBytes, 0);

/** Whether parsed JSON is a manifest of this version. */
export function isManifest(value: unknown): value is Manifest {
  const manifest = value as Partial<Manifest> | null;
  return (
    typeof manifest === 'object' &&
    manifest !== null &&
    manifest.version === 1 &&
    typeof manifest.runId === 'string' &&
    typeof manifest.name === 'string' &&
    typeof manifest.baseModel === 'string' &&
    manifest.type !== undefined &&
    manifest.type in FOLDER_BY_TYPE &&
    Array.isArray(manifest.files)
  );
}
