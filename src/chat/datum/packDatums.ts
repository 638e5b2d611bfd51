import { checkAtLeast } from '../../support/checks.js';
import type { Datum } from '../../wire/datum.js';
import { ModelInput } from '../../wire/modelInput.js';
import { namedTensor, TensorData } from '../../wire/tensor.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { joinText } from './chunks.js';

/** Options of `packDatums`. */
export interface PackOptions {
  /** Positions that a packed datum may take, at least 1. A longer datum is kept alone. */
  readonly maxLength: number;
}

/**
 * Joins short datums into longer ones of at most `maxLength` positions: each goes into the first that has room, in the order given.
 *
 * Every position keeps its own target and weight, so the loss is the same sum. But a position also sees the examples before it in its datum, as
 * the service knows no mask between them: good for many short, independent texts, wrong where that matters.
 *
 * @throws ValidationError for datums with `logprobs` (they were sampled without such neighbours, so ratios would be wrong), and for
 * datums that do not have the same tensors
 */
export function packDatums(data: readonly Datum[], { maxLength }: PackOptions): Datum[] {
  checkAtLeast({ maxLength }, 1);
  const bins: { length: number; readonly data: Datum[] }[] = [];
  for (const datum of data) {
    if ('logprobs' in datum.lossFnInputs) {
      throw new ValidationError('a datum with logprobs cannot be packed: its tokens were sampled without neighbours');
    }
    const { length } = datum.modelInput;
    const bin = bins.find((open) => open.length + length <= maxLength);
    if (bin === undefined) bins.push({ length, data: [datum] });
    else {
      bin.length += length;
      bin.data.push(datum);
    }
  }
  return bins.map(({ data: packed }) => (packed.length === 1 ? packed[0]! : join(packed)));
}

function join(data: readonly Datum[]): Datum {
  const [first] = data;
  const names = Object.keys(first!.lossFnInputs);
  const lossFnInputs: Record<string, TensorData> = {};
  for (const name of names) {
    lossFnInputs[name] = joinTensors(
      data.map((datum) => tensorOf(datum, name, names)),
      name,
    );
  }
  const hasSpans = data.every(({ modelInputSpans }) => modelInputSpans !== undefined);
  return {
    modelInput: new ModelInput(joinText(data.flatMap(({ modelInput }) => modelInput.chunks))),
    lossFnInputs,
    ...(hasSpans
      ? {
          modelInputSpans: data.flatMap(({ modelInputSpans = [] }) => modelInputSpans),
          lossFnInputSpans: data.flatMap(({ lossFnInputSpans = [] }) => lossFnInputSpans),
        }
      : {}),
  };
}

function tensorOf({ lossFnInputs }: Datum, name: string, names: readonly string[]): TensorData {
  const input = lossFnInputs[name];
  if (input === undefined || Object.keys(lossFnInputs).length !== names.length) {
    throw new ValidationError(`datums can be packed only where all have the same tensors: ${names.join(', ')}`);
  }
  return namedTensor(name, input).toDense();
}

function joinTensors(tensors: readonly TensorData[], name: string): TensorData {
  const [, ...columns] = tensors[0]!.shape;
  if (
    tensors.some(
      ({ shape }) => shape.length !== columns.length + 1 || columns.some((size, at) => size !== shape[at + 1]),
    )
  ) {
    throw new ValidationError(`${name} has rows of different lengths, so its datums cannot be packed`);
  }
  const rows = tensors.reduce((sum, { shape }) => sum + (shape[0] ?? 0), 0);
  const size = tensors.reduce((sum, { data }) => sum + data.length, 0);
  const { dtype } = tensors[0]!;
  const isWide = tensors.some(({ data }) => data instanceof Float64Array);
  const data = dtype === 'float32' ? new Float32Array(size) : isWide ? new Float64Array(size) : new Int32Array(size);
  let at = 0;
  for (const tensor of tensors) {
    data.set(tensor.data, at);
    at += tensor.data.length;
  }
  return new TensorData({ dtype, data, shape: [rows, ...columns] });
}
