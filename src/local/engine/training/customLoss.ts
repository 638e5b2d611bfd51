import { EngineUserError } from '../errors.js';
import type { LossSource } from './trainingModel.js';
import type { EngineDatum, ForwardBackwardResult, LossFunction, LossResult } from '../types.js';

/** Runs a pass with a loss from elsewhere; the gradients of a forward pass are not used. */
type Pass = (source: LossSource, forwardOnly: boolean) => Promise<ForwardBackwardResult>;

/** Forward, the function on every datum, then backward with the derivatives it gave. */
export async function runCustomLoss(
  data: readonly EngineDatum[],
  loss: LossFunction,
  forwardOnly: boolean,
  pass: Pass,
): Promise<ForwardBackwardResult> {
  const nothing = data.map(({ inputs }) => {
    const size = inputs['target_tokens']?.shape.reduce((a, b) => a * b, 1) ?? 0;
    return new Float32Array(size);
  });
  const forward = await pass({ gradients: nothing, losses: [] }, true);
  const results = await Promise.all(
    data.map(async ({ inputs }, index) => loss(forward.outputs[index]!['logprobs']!, inputs, index)),
  );
  refuseNotFinite(results);
  const metrics = reduceMetrics(results);
  if (forwardOnly) return { outputs: forward.outputs, metrics };
  const source = { gradients: results.map(({ gradient }) => gradient), losses: results.map((result) => result.loss) };
  const { outputs } = await pass(source, false);
  return { outputs, metrics };
}

/** NaN or infinity would reach the weights, or become `null` in the answer. */
function refuseNotFinite(results: readonly LossResult[]): void {
  for (const [index, { loss, metrics = {} }] of results.entries()) {
    for (const [name, value] of [['loss', loss] as const, ...Object.entries(metrics)]) {
      if (!Number.isFinite(value)) {
        throw new EngineUserError(`the custom loss gave ${value} for ${name} of datum ${index}; nothing was changed`);
      }
    }
  }
}

function reduceMetrics(results: readonly LossResult[]): Record<string, number> {
  const metrics = new Map([['loss:sum', results.reduce((sum, { loss }) => sum + loss, 0)]]);
  for (const result of results) {
    for (const [key, value] of Object.entries(result.metrics ?? {})) {
      metrics.set(key, (metrics.get(key) ?? 0) + (key.endsWith(':mean') ? value / results.length : value));
    }
  }
  return Object.fromEntries(metrics);
}
