import type { EngineDatum, EngineTensor } from '../types.js';

/** Class instances lose their accessors when they cross to another thread: take what matters. */
export function plainTensor({ dtype, data, shape, sparse }: EngineTensor): EngineTensor {
  const plain = { dtype, data, shape: [...shape] };
  return sparse === undefined
    ? plain
    : { ...plain, sparse: { crowIndices: sparse.crowIndices, colIndices: sparse.colIndices } };
}

export function plainDatum({ tokens, inputs }: EngineDatum): EngineDatum {
  return {
    tokens,
    inputs: Object.fromEntries(Object.entries(inputs).map(([name, tensor]) => [name, plainTensor(tensor)])),
  };
}
