import { ValidationError } from '../wire/tinkerError.js';
import type { LoraModule } from './loraModules.js';
import type { ModelFamily } from './modelFamily.js';
import { leafOf } from './moduleNames.js';
import { ELEMENT_BYTES, type SafetensorsFile } from '../support/files/safetensors.js';
import { copyRange, type TensorToWrite } from '../support/files/writeSafetensors.js';

type Factor = Omit<TensorToWrite, 'name'>;

/**
 * Factors of modules that are rows of one module, as factors of that one: A is theirs one below the other, B has
 * theirs on the diagonal and zeros elsewhere. The ranks add up.
 */
export function joinFactors(
  file: SafetensorsFile,
  whole: string,
  parts: readonly LoraModule[],
  family: ModelFamily,
  outputs: number,
): { readonly a: Factor; readonly b: Factor; readonly rank: number } {
  const order = family.joined[leafOf(whole)]!;
  const sorted = order.map((name) => {
    const part = parts.find(({ module }) => leafOf(module) === name);
    if (part === undefined)
      throw new ValidationError(`${whole} needs ${order.join(', ')}, and the adapter lacks ${name}`);
    return part;
  });
  const { dtype, shape } = sorted[0]!.a;
  const inputs = shape[1]!;
  const width = ELEMENT_BYTES[dtype];
  const rows = sorted.reduce((sum, part) => sum + part.outputs, 0);
  if (width === undefined || sorted.some(({ a, b }) => a.dtype !== dtype || b.dtype !== dtype || a.shape[1] !== inputs))
    throw new ValidationError(`The parts of ${whole} do not fit together`);
  if (rows > outputs)
    throw new ValidationError(`The parts of ${whole} have ${rows} rows, and the base model ${outputs}`);
  const rank = sorted.reduce((sum, part) => sum + part.rank, 0);
  return {
    rank,
    a: {
      dtype,
      shape: [rank, inputs],
      byteLength: rank * inputs * width,
      bytes: async function* () {
        for (const part of sorted) yield* copyRange(file, part.a);
      },
    },
    b: {
      dtype,
      shape: [outputs, rank],
      byteLength: outputs * rank * width,
      bytes: async function* () {
        let column = 0;
        for (const { b, rank: own, outputs: count } of sorted) {
          const bytes = await file.read(b.start, b.end - b.start);
          const placed = new Uint8Array(count * rank * width);
          for (let row = 0; row < count; row++)
            placed.set(bytes.subarray(row * own * width, (row + 1) * own * width), (row * rank + column) * width);
          yield placed;
          column += own;
        }
        // Rows of the whole module that nothing was trained for.
        yield new Uint8Array((outputs - rows) * rank * width);
      },
    },
  };
}
