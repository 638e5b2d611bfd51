import { EngineUserError } from '../errors.js';
import type { EngineDatum, EngineTensor } from '../types.js';

/** A CSR tensor spelled out, row major; a dense one as it is. */
function denseValues(tensor: EngineTensor, filler = 0): Float32Array | Int32Array | Float64Array {
  const { sparse, shape, data } = tensor;
  if (sparse === undefined) return data;
  const [rows = 0, columns = 0] = shape;
  const dense = data instanceof Float32Array ? new Float32Array(rows * columns) : new Float64Array(rows * columns);
  dense.fill(filler);
  for (let row = 0; row < rows; row++) {
    for (let i = sparse.crowIndices[row]!; i < sparse.crowIndices[row + 1]!; i++) {
      dense[row * columns + sparse.colIndices[i]!] = data[i]!;
    }
  }
  return dense;
}

/** Why a tensor's parts do not fit together, or undefined. */
export function tensorFault({ shape, data, sparse }: EngineTensor): string | undefined {
  if (!shape.every((size) => Number.isInteger(size) && size >= 0)) return `has shape [${shape.join(', ')}]`;
  if (sparse === undefined) {
    const size = shape.reduce((a, b) => a * b, 1);
    return size === data.length ? undefined : `has ${data.length} values for shape [${shape.join(', ')}]`;
  }
  const { crowIndices, colIndices } = sparse;
  const [rows = 0, columns = 0] = shape;
  const ordered = crowIndices.every((value, index) => index === 0 || value >= crowIndices[index - 1]!);
  const fits =
    shape.length === 2 &&
    crowIndices.length === rows + 1 &&
    crowIndices[0] === 0 &&
    crowIndices[rows] === data.length &&
    colIndices.length === data.length &&
    colIndices.every((column) => column >= 0 && column < columns);
  return fits && ordered ? undefined : 'has CSR indices that do not fit its shape';
}

/** The inputs of one datum, read with checks; every complaint names the datum and the field. */
export class LossInputs {
  readonly #datum: EngineDatum;
  readonly #index: number;
  readonly rows: number;

  constructor(datum: EngineDatum, index: number, limits: { readonly vocabulary: number; readonly context: number }) {
    this.#datum = datum;
    this.#index = index;
    this.rows = datum.tokens.length;
    if (this.rows === 0) throw this.#fault('model_input', 'is empty');
    if (this.rows > limits.context) {
      throw this.#fault('model_input', `has ${this.rows} tokens, more than the context of ${limits.context}`);
    }
    this.#checkTokens('model_input', datum.tokens, limits.vocabulary);
  }

  has(field: string): boolean {
    return this.#datum.inputs[field] !== undefined;
  }

  /** The targets, [rows, k]; `k` is undefined for a flat tensor. */
  targets(vocabulary: number): { readonly tokens: Int32Array; readonly k: number; readonly shape: readonly number[] } {
    const tensor = this.#tensor('target_tokens');
    const { shape } = tensor;
    if (tensor.dtype !== 'int64') throw this.#fault('target_tokens', 'must be int64');
    const k = shape.length === 2 ? shape[1]! : 1;
    if (shape.length < 1 || shape.length > 2 || shape[0] !== this.rows || k === 0) {
      throw this.#fault(
        'target_tokens',
        `has shape [${shape.join(', ')}], expected [${this.rows}] or [${this.rows}, K]`,
      );
    }
    const tokens = Int32Array.from(denseValues(tensor));
    this.#checkTokens('target_tokens', tokens, vocabulary);
    return { tokens, k, shape };
  }

  /** Values of a field that must be as long as the targets. */
  values(field: string, shape: readonly number[]): Float32Array {
    const tensor = this.#tensor(field);
    if (tensor.shape.join() !== shape.join()) {
      throw this.#fault(field, `has shape [${tensor.shape.join(', ')}], expected [${shape.join(', ')}]`);
    }
    const values = denseValues(tensor);
    const floats = values instanceof Float32Array ? values : Float32Array.from(values);
    const bad = floats.findIndex((value) => !Number.isFinite(value));
    if (bad >= 0) throw this.#fault(field, `is not finite at ${bad}`);
    return floats;
  }

  fault(message: string): EngineUserError {
    return new EngineUserError(`datum ${this.#index}: ${message}`);
  }

  #tensor(field: string): EngineTensor {
    const tensor = this.#datum.inputs[field];
    if (tensor === undefined) throw this.#fault(field, 'is missing');
    const fault = tensorFault(tensor);
    if (fault !== undefined) throw this.#fault(field, fault);
    return tensor;
  }

  #checkTokens(field: string, tokens: Int32Array, vocabulary: number): void {
    const bad = tokens.findIndex((token) => token < 0 || token >= vocabulary);
    if (bad >= 0) {
      throw this.#fault(field, `has ${tokens[bad]} at ${bad}, outside the vocabulary of 0 to ${vocabulary - 1}`);
    }
  }

  #fault(field: string, message: string): EngineUserError {
    return this.fault(`${field} ${message}`);
  }
}
