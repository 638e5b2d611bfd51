import { TensorData } from '../tensor.js';
import type { ForwardBackwardOutput } from '../training.js';
import { bytesOf, decodeValues, DTYPE, int64Bytes, itemBytes, toFloats, toInt64 } from './tensor.js';
import { readDoubleEntry, readEntry, readFields, readInt64s } from './fields.js';
import { encodeMessage, type MessageWriter } from './messageWriter.js';

interface ArrayRecord {
  readonly fields: Map<string, TensorData[]>;
  numDatums: number;
}

/** Datums that a record without fields may count: far more than a pass can have, far fewer than would fill the memory. */
const MOST_EMPTY_DATUMS = 2 ** 20;

/**
 * What a forward-backward pass answers, from protobuf bytes. Several records are one list of datums.
 *
 * @throws an Error when the bytes are no such message, before it allocates what they only claim to hold.
 */
export function decodeForwardBackwardOutput(bytes: Uint8Array): ForwardBackwardOutput {
  let outputType = '';
  const records: ArrayRecord[] = [];
  const metrics: [string, number][] = [];
  readFields(bytes, (field, reader) => {
    if (field === 1) outputType = reader.string();
    else if (field === 2) records.push(readRecord(reader.bytes()));
    else if (field === 3) metrics.push(readDoubleEntry(reader.bytes()));
    else return false;
    return true;
  });
  let empty = 0;
  for (const { fields, numDatums } of records) if (fields.size === 0) empty += numDatums;
  if (empty > MOST_EMPTY_DATUMS) throw new RangeError(`records without fields count ${empty} datums`);
  const lossFnOutputType = outputType.slice(outputType.lastIndexOf(':') + 1) || 'ArrayRecord';
  return { lossFnOutputType, lossFnOutputs: records.flatMap(datumsOf), metrics: Object.fromEntries(metrics) };
}

/**
 * The datums of one record. `num_datums` counts them where it is given: a record may have had all its fields stripped.
 *
 * @throws RangeError when a field has another number of entries, since its tensors would land on the wrong datums.
 */
function datumsOf({ fields, numDatums }: ArrayRecord): Record<string, TensorData>[] {
  const [first] = fields.values();
  const length = numDatums > 0 ? numDatums : (first?.length ?? 0);
  for (const [name, column] of fields) {
    if (column.length !== length)
      throw new RangeError(`field ${name} has ${column.length} entries for ${length} datums`);
  }
  const [only, ...others] = fields.keys();
  if (only !== undefined && others.length === 0 && first !== undefined)
    return first.map((tensor) => ({ [only]: tensor }));
  // fromEntries: assigning a field called __proto__ would lose it.
  return Array.from({ length }, (_, index) =>
    Object.fromEntries(Array.from(fields, ([name, column]) => [name, column[index]!])),
  );
}

function readRecord(bytes: Uint8Array): ArrayRecord {
  const record: ArrayRecord = { fields: new Map(), numDatums: 0 };
  readFields(bytes, (field, reader) => {
    if (field === 2) {
      const { key, value } = readEntry(reader.bytes());
      record.fields.set(key, readBatchedTensor(value));
    } else if (field === 3) record.numDatums = Number(reader.int64());
    else return false;
    return true;
  });
  return record;
}

function readBatchedTensor(bytes: Uint8Array): TensorData[] {
  let data: Uint8Array = new Uint8Array();
  let offsets: Int32Array | Float64Array = new Int32Array();
  let dtype = 0;
  const trailingShape: number[] = [];
  readFields(bytes, (field, reader, wireType) => {
    if (field === 1) data = reader.bytes();
    else if (field === 2) offsets = toInt64(reader.bytes());
    else if (field === 3) dtype = reader.int32();
    else if (field === 4) readInt64s(reader, wireType, trailingShape);
    else return false;
    return true;
  });
  const values = decodeValues(data, dtype);
  const size = itemBytes(dtype);
  const trailing = trailingShape.reduce((product, extent) => product * extent, 1);
  offsets.forEach((offset, index) => {
    if (offset % size !== 0 || offset < (index === 0 ? 0 : offsets[index - 1]!) || offset > data.length)
      throw new RangeError('the offsets of a batched tensor must rise within its data');
  });
  return Array.from({ length: Math.max(0, offsets.length - 1) }, (_, index) => {
    const slice = values.data.subarray(offsets[index]! / size, offsets[index + 1]! / size);
    const leading = trailing === 0 ? 0 : slice.length / trailing;
    return new TensorData({ dtype: values.dtype, data: slice, shape: [leading, ...trailingShape] });
  });
}

/** The inverse, for servers: one record of all datums, or one a run of datums whose tensors share dtype and trailing shape. */
export function encodeForwardBackwardOutput(output: ForwardBackwardOutput): Uint8Array {
  return encodeMessage((writer) => {
    writer.string(1, output.lossFnOutputType);
    for (const run of runsOfOneShape(output.lossFnOutputs)) {
      writer.message(2, (record) => {
        record.string(1, output.lossFnOutputType);
        for (const name of Object.keys(run[0]!)) {
          const tensors = run.map((datum) => datum[name]!.toDense());
          record.entry(2, name, (entry) => entry.message(2, (batched) => writeBatchedTensor(batched, tensors)));
        }
        record.int(3, run.length);
      });
    }
    for (const [key, value] of Object.entries(output.metrics)) writer.entry(3, key, (entry) => entry.double(2, value));
  });
}

type LossFnOutput = Readonly<Record<string, TensorData>>;

function runsOfOneShape(outputs: readonly LossFnOutput[]): LossFnOutput[][] {
  const runs: LossFnOutput[][] = [];
  let last = '';
  for (const output of outputs) {
    const shape = Object.entries(output)
      .map(([name, tensor]) => `${name}:${tensor.dtype}:${tensor.shape.slice(1).join('x')}`)
      .join(' ');
    if (runs.length === 0 || shape !== last) runs.push([]);
    runs[runs.length - 1]!.push(output);
    last = shape;
  }
  return runs;
}

/** One field of many datums. */
function writeBatchedTensor(writer: MessageWriter, tensors: readonly TensorData[]): void {
  const { dtype, shape } = tensors[0]!;
  const parts = tensors.map(({ data }) => (dtype === 'int64' ? int64Bytes(data) : bytesOf(toFloats(data))));
  /** Where each datum's values start, and where the last ones end, in bytes. */
  const offsets = new Float64Array(parts.length + 1);
  parts.forEach((part, index) => (offsets[index + 1] = offsets[index]! + part.length));
  writer.bytes(1, Buffer.concat(parts)).int64s(2, offsets).int(3, DTYPE[dtype]).packedInts(4, shape.slice(1));
}
