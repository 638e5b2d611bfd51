import type { Heap } from '../numeric/heap.js';
import { headWidthOf, type ModelShape, type RopeScaling } from './shapes.js';

/** Llama 3 stretches low frequencies by `factor`, keeps high ones, and blends in between. */
function stretched(frequency: number, scaling: RopeScaling): number {
  const { factor, lowFrequencyFactor, highFrequencyFactor, originalContext } = scaling;
  const wavelengths = (originalContext * frequency) / (2 * Math.PI);
  if (wavelengths < lowFrequencyFactor) return frequency / factor;
  if (wavelengths > highFrequencyFactor) return frequency;
  const smooth = (wavelengths - lowFrequencyFactor) / (highFrequencyFactor - lowFrequencyFactor);
  return ((1 - smooth) * frequency) / factor + smooth * frequency;
}

/** Cosines and sines of the rotary encoding in the heap: for each position those of half a head, one after the other. */
export function ropeTable(heap: Heap, shape: ModelShape): number {
  const { context, ropeBase = 10_000, ropeScaling } = shape;
  const headWidth = headWidthOf(shape);
  const half = headWidth / 2;
  const table = heap.keep(context * headWidth);
  for (let i = 0; i < half; i++) {
    const frequency = Math.pow(ropeBase, -i / half);
    const used = ropeScaling === undefined ? frequency : stretched(frequency, ropeScaling);
    for (let position = 0; position < context; position++) {
      heap.floats[table + position * headWidth + i] = Math.cos(position * used);
      heap.floats[table + position * headWidth + half + i] = Math.sin(position * used);
    }
  }
  return table;
}
