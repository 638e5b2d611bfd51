import type { EngineTensor, LossFunction } from '../engine/types.js';
import { TensorData, type CustomLossInput } from '../../wire/index.js';
import { UserError } from '../queue/failure.js';
import type { Program, ProgramInput } from '../../losses/graph/program.js';

/** A program as the engine takes a loss: given a datum's logprobs and inputs, value and derivative. */
export function lossFunctionOf(program: Program, inputs: readonly CustomLossInput[]): LossFunction {
  return async (logprobs, tensors, index) => {
    // The loss runs on the thread that answers requests: let those through between datums.
    await new Promise((resolve) => setImmediate(resolve));
    const given = inputs.map(({ name, rank }, position): ProgramInput => {
      const tensor = position === 0 ? logprobs : Object.hasOwn(tensors, name) ? tensors[name] : undefined;
      if (tensor === undefined)
        throw new UserError(`datum ${index} has no loss_fn_inputs.${name}, which the loss takes`);
      if (tensor.shape.length !== rank) {
        throw new UserError(
          `${name} of datum ${index} has rank ${tensor.shape.length}, but the loss was made for ${rank}`,
        );
      }
      return dense(tensor);
    });
    try {
      return program.run(given);
    } catch (error) {
      if (error instanceof RangeError)
        throw new UserError(`the custom loss failed on datum ${index}: ${error.message}`);
      throw error;
    }
  };
}

function dense(tensor: EngineTensor): ProgramInput {
  const { dtype, data, shape, sparse } = tensor;
  const values = sparse === undefined ? data : new TensorData({ dtype, data, shape, sparse }).toDense().data;
  return { shape, data: Float64Array.from(values) };
}
