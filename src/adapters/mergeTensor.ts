import { decodeFloats, encodeFloats, isFloatType } from '../support/files/floats.js';
import { ValidationError } from '../wire/tinkerError.js';
import type { Addition } from './planMerge.js';
import { ELEMENT_BYTES, type SafetensorsFile, type TensorPlace } from '../support/files/safetensors.js';

const UNQUANTIZED =
  'Only F32, F16 and BF16 weights can be added to. Use a release of the base model that is not quantized.';

const BLOCK_BYTES = 4 * 1024 * 1024;

interface Factors extends Addition {
  readonly rank: number;
  readonly inputs: number;
  readonly outputs: number;
  readonly left: Float32Array;
  readonly right: Float32Array;
}

/**
 * The bytes of a tensor with additions, a few rows at a time: what is held is a block of rows and the factors of one
 * expert. Sums are taken in double precision and rounded once to the tensor's own type.
 */
export async function* mergeTensor(
  base: SafetensorsFile,
  name: string,
  place: TensorPlace,
  adapter: SafetensorsFile,
  additions: readonly Addition[],
  scale: number,
): AsyncGenerator<Uint8Array> {
  const { dtype, shape } = place;
  if (!isFloatType(dtype)) throw new ValidationError(`${name} of the base model is stored as ${dtype}\n${UNQUANTIZED}`);
  const [rows, columns] = shape.slice(-2) as [number, number];
  const experts = shape.length === 3 ? shape[0]! : 1;
  const rowBytes = columns * ELEMENT_BYTES[dtype]!;
  const blockRows = Math.max(1, Math.floor(BLOCK_BYTES / rowBytes));
  const change = new Float64Array(columns);
  for (let expert = 0; expert < experts; expert++) {
    const factors: Factors[] = [];
    for (const addition of additions)
      if (addition.expert === expert) factors.push(await readFactors(adapter, name, addition, scale));
    for (let first = 0; first < rows; first += blockRows) {
      const count = Math.min(blockRows, rows - first);
      const start = place.start + (expert * rows + first) * rowBytes;
      const bytes = await base.read(start, count * rowBytes);
      if (factors.length > 0) {
        const values = decodeFloats(bytes, dtype, name);
        for (let row = 0; row < count; row++) {
          change.fill(0);
          for (const one of factors) addRow(change, first + row, one);
          const at = row * columns;
          for (let column = 0; column < columns; column++) values[at + column]! += change[column]!;
        }
        encodeFloats(values, dtype, bytes);
      }
      yield bytes;
    }
  }
}

async function readFactors(file: SafetensorsFile, name: string, addition: Addition, scale: number): Promise<Factors> {
  const { a, b } = addition;
  const [rank, inputs] = a.shape as [number, number];
  const outputs = b.shape[0]!;
  const right = decodeFloats(await file.read(a.start, a.end - a.start), a.dtype, name);
  const left = decodeFloats(await file.read(b.start, b.end - b.start), b.dtype, name);
  return { ...addition, rank, inputs, outputs, left: left.map((value) => value * scale), right };
}

/** Adds one row of the product to a row of the tensor. */
function addRow(change: Float64Array, row: number, factors: Factors): void {
  const { rank, inputs, outputs, left, right, offset, stride } = factors;
  if (factors.rowsAreInputs) {
    for (let output = 0; output < outputs; output++) {
      let sum = 0;
      for (let k = 0; k < rank; k++) sum += left[output * rank + k]! * right[k * inputs + row]!;
      change[offset + output * stride]! += sum;
    }
    return;
  }
  const output = (row - offset) / stride;
  if (!(output >= 0 && output < outputs) || !Number.isInteger(output)) return;
  addProduct(change, left.subarray(output * rank, (output + 1) * rank), right, inputs);
}

/** Adds `factors` times the rows of `right`, four rows at a time: the sum is read and written a quarter as often. */
function addProduct(sum: Float64Array, factors: Float32Array, right: Float32Array, width: number): void {
  let k = 0;
  for (; k + 4 <= factors.length; k += 4) {
    const [f0, f1, f2, f3] = [factors[k]!, factors[k + 1]!, factors[k + 2]!, factors[k + 3]!];
    const [a, b, c, d] = [k * width, (k + 1) * width, (k + 2) * width, (k + 3) * width];
    for (let i = 0; i < width; i++)
      sum[i]! += f0 * right[a + i]! + f1 * right[b + i]! + f2 * right[c + i]! + f3 * right[d + i]!;
  }
  for (; k < factors.length; k++) {
    const factor = factors[k]!;
    for (let i = 0; i < width; i++) sum[i]! += factor * right[k * width + i]!;
  }
}
