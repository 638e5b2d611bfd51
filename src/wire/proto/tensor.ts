import { TensorData, type TensorDtype, type TensorValues } from '../tensor.js';
import { decodeValues, DTYPE, toFloats, toInt64 } from './bytes.js';
import { readFields, readInt64s } from './fields.js';
import type { MessageWriter } from './messageWriter.js';

/** Tensor { oneof { bytes dense=1; SparseCsr sparse_csr=2 } DType dtype=3; repeated int64 shape=4 } */
export function writeTensor(writer: MessageWriter, tensor: TensorData): void {
  const { dtype, data, sparse } = tensor;
  if (sparse !== undefined)
    writer.message(2, (csr) => {
      if (data.length > 0) writeValues(csr, dtype, data);
      csr.int64s(2, sparse.crowIndices).int64s(3, sparse.colIndices);
    });
  else writeValues(writer, dtype, data);
  writer.int(3, DTYPE[dtype]).packedInts(4, tensor.shape);
}

function writeValues(writer: MessageWriter, dtype: TensorDtype, data: TensorValues): void {
  if (dtype === 'int64') writer.presentInt64s(1, data);
  else writer.presentBytes(1, toFloats(data));
}

const NONE: Uint8Array = new Uint8Array();

export function readTensor(bytes: Uint8Array): TensorData {
  let dense = NONE;
  let sparse: { values: Uint8Array; crow: Uint8Array; col: Uint8Array } | undefined;
  let dtype = 0;
  const shape: number[] = [];
  readFields(bytes, (field, reader, wireType) => {
    if (field === 1) dense = reader.bytes();
    else if (field === 2) sparse = readSparse(reader.bytes());
    else if (field === 3) dtype = reader.int32();
    else if (field === 4) readInt64s(reader, wireType, shape);
    else return false;
    return true;
  });
  if (sparse === undefined) {
    const values = decodeValues(dense, dtype);
    return new TensorData({ ...values, shape: shape.length > 0 ? shape : [values.data.length] });
  }
  return new TensorData({
    ...decodeValues(sparse.values, dtype),
    shape,
    sparse: { crowIndices: Int32Array.from(toInt64(sparse.crow)), colIndices: Int32Array.from(toInt64(sparse.col)) },
  });
}

function readSparse(bytes: Uint8Array): { values: Uint8Array; crow: Uint8Array; col: Uint8Array } {
  const sparse = { values: NONE, crow: NONE, col: NONE };
  readFields(bytes, (field, reader) => {
    if (field === 1) sparse.values = reader.bytes();
    else if (field === 2) sparse.crow = reader.bytes();
    else if (field === 3) sparse.col = reader.bytes();
    else return false;
    return true;
  });
  return sparse;
}
