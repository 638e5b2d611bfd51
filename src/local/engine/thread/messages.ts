import { EngineCancelledError, EngineMemoryError, EngineUserError } from '../errors.js';
import type { CoreOptions, EngineCore, SamplerSource } from './core.js';
import type { BaseModelInfo } from '../types.js';

/** What the worker is started with. */
export interface WorkerSetup {
  /** Safetensors files of the base models by name. */
  readonly weights: Readonly<Record<string, Uint8Array>>;
  readonly options: CoreOptions;
}

/** The engine's methods as they cross to the worker, with their results. */
export interface WorkerMethods {
  beginBase: Parameters<EngineCore['beginBase']>;
  putTensor: Parameters<EngineCore['putTensor']>;
  finishBase: [baseModel: string, endTokens: readonly number[], tokenBytes: readonly Uint8Array[] | undefined];
  createModel: Parameters<EngineCore['createModel']>;
  forwardBackward: Parameters<EngineCore['forwardBackward']>;
  optimStep: Parameters<EngineCore['optimStep']>;
  exportState: Parameters<EngineCore['exportState']>;
  loadState: Parameters<EngineCore['loadState']>;
  createSampler: [samplerId: string, source: SamplerSource];
  sample: Parameters<EngineCore['sample']>;
  disposeModel: [modelId: string];
  disposeSampler: [samplerId: string];
}

export type WorkerMethod = keyof WorkerMethods;

/** To the worker: a call, or the wish to cancel the sample of that id. */
export type ToWorker =
  | { readonly type: 'call'; readonly id: number; readonly method: WorkerMethod; readonly args: readonly unknown[] }
  | { readonly type: 'cancel'; readonly id: number };

export type FromWorker =
  | { readonly type: 'ready'; readonly baseModels: readonly BaseModelInfo[] }
  | { readonly type: 'result'; readonly id: number; readonly value: unknown }
  | {
      readonly type: 'error';
      readonly id: number;
      readonly name: string;
      readonly message: string;
      readonly stack?: string;
    };

/** Classes do not survive the crossing; their name does. */
export function reviveError(name: string, message: string, stack: string | undefined): Error {
  if (name === 'EngineUserError') return new EngineUserError(message);
  if (name === 'EngineCancelledError') return new EngineCancelledError(message);
  if (name === 'EngineMemoryError') return new EngineMemoryError(message);
  const error = new Error(message);
  if (stack !== undefined) error.stack = stack;
  return error;
}
