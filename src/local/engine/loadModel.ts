import { EngineMemoryError } from './errors.js';
import { baseTensors, parameterCount } from './model/shapes.js';
import type { WorkerLink } from './thread/workerLink.js';
import type { OpenedModel } from '../weights/OpenedModel.js';

/** How far the loading of a model is. */
export interface LoadProgress {
  /** Its name. */
  readonly model: string;
  /** Bytes of the tensors that are in memory. */
  readonly loadedBytes: number;
  /** What the weights take in memory. */
  readonly totalBytes: number;
}

/** Hands the tensors of a model to the engine's thread, one at a time: no more than one is held twice. */
export async function loadModel(
  link: WorkerLink,
  { shape, endTokens, tokenBytes, tensor }: OpenedModel,
  onProgress: (progress: LoadProgress) => void,
): Promise<void> {
  const { name: model } = shape;
  const [first, ...rest] = baseTensors(shape);
  // The embedding says in which format the matrices are, and so what all of it takes.
  let next = await tensor(first!.name);
  const weightBytes = next.dtype === 'bf16' ? 2 : 4;
  const totalBytes = parameterCount(shape) * weightBytes;
  refuseTooLarge(model, totalBytes);
  await link.call('beginBase', [shape, next.dtype]);
  let loadedBytes = 0;
  for (const { name } of [first!, ...rest]) {
    if (name !== first!.name) next = await tensor(name);
    const { data } = next;
    loadedBytes += data.length * weightBytes;
    const isWhole = data.buffer instanceof ArrayBuffer && data.byteLength === data.buffer.byteLength;
    await link.call('putTensor', [model, name, next], isWhole ? [data.buffer] : []);
    onProgress({ model, loadedBytes, totalBytes });
  }
  await link.call('finishBase', [model, endTokens, tokenBytes?.()]);
}

/** A machine without room for the weights would be brought to a halt by them. */
function refuseTooLarge(model: string, bytes: number): void {
  const available = process.availableMemory?.() ?? Infinity;
  if (bytes <= available) return;
  const mebibytes = (value: number) => Math.ceil(value / 2 ** 20);
  throw new EngineMemoryError(
    `${model} needs ${mebibytes(bytes)} MiB of memory for its weights, and ${mebibytes(available)} MiB are available. Close other programs, or load a smaller model`,
  );
}
