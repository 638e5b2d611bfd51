import type { Datum } from '../wire/datum.js';
import { namedTensor, type TensorInput } from '../wire/tensor.js';
import { ValidationError } from '../wire/tinkerError.js';
import type { ProgramInput, ProgramResult } from './graph/program.js';
import type { TracedLoss } from './TracedLoss.js';

/** A loss of a batch, and what training needs of it. */
export interface EvaluatedLoss {
  /** The sum over the datums, or the mean over the pairs. */
  readonly loss: number;
  /** The derivative by every logprob, one array per datum. */
  readonly gradients: readonly Float32Array[];
  /** The loss's metrics, by name. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** The logprobs of one datum: one for each target, row major. */
export type DatumLogprobs = Float32Array | Float64Array | readonly number[];

/**
 * Evaluates and differentiates a traced loss here, given the model's logprobs for each datum.
 *
 * @throws ValidationError naming the datum and the input that is missing or does not fit.
 */
export function evaluateLoss(
  loss: TracedLoss,
  data: readonly Datum[],
  logprobs: readonly DatumLogprobs[],
): EvaluatedLoss {
  const results = unitsOf(loss, data).map((unit) => runUnit(loss, data, logprobs, unit));
  const share = loss.unit === 'pair' ? 1 / results.length : 1;
  const metrics = new Map<string, number>();
  for (const result of results) {
    for (const [key, value] of Object.entries(result.metrics)) {
      metrics.set(key, (metrics.get(key) ?? 0) + (key.endsWith(':mean') ? value / results.length : value));
    }
  }
  return {
    loss: results.reduce((sum, result) => sum + share * result.loss, 0),
    gradients: results.flatMap(({ gradients }) =>
      gradients.map((gradient) => Float32Array.from(gradient, (value) => share * value)),
    ),
    metrics: Object.fromEntries(metrics),
  };
}

/** The places of the datums that the loss looks at together. @throws ValidationError */
export function unitsOf({ name, unit }: TracedLoss, data: readonly Datum[]): readonly (readonly number[])[] {
  if (unit === 'datum') return data.map((_, place) => [place]);
  if (data.length % 2 !== 0)
    throw new ValidationError(
      `the loss ${name} takes pairs, chosen then rejected, but there are ${data.length} datums: an odd number`,
    );
  return Array.from({ length: data.length / 2 }, (_, pair) => [2 * pair, 2 * pair + 1]);
}

/** @internal Checks that the data has what a loss takes, before anything is sent. @throws ValidationError */
export function checkLossData(loss: TracedLoss, data: readonly Datum[]): void {
  for (const unit of unitsOf(loss, data)) {
    for (const { name, rank } of loss.inputs) {
      const { place, key } = located(loss, name, unit);
      const input = lossInput(data[place]!, key);
      if (input.tensor === undefined)
        throw new ValidationError(
          `data[${place}].lossFnInputs.${input.name} is missing: the loss ${loss.name} takes it`,
        );
      if (rank !== undefined) checkRank(loss, namedTensor(input.name, input.tensor).shape.length, rank, place, key);
    }
  }
}

function checkRank(loss: TracedLoss, found: number, declared: number, place: number, key: string): void {
  if (found !== declared)
    throw new ValidationError(
      `data[${place}].lossFnInputs.${key} has rank ${found}, the loss ${loss.name} declared ${declared}`,
    );
}

/** Values that finite differences must not move: those of detached nodes, which the first run of a unit fills in. */
export type Held = Parameters<TracedLoss['program']['run']>[1];

/** @internal The loss of one unit, with exact derivatives. */
export function runUnit(
  loss: TracedLoss,
  data: readonly Datum[],
  logprobs: readonly DatumLogprobs[],
  unit: readonly number[],
  held?: Held,
): ProgramResult {
  const given = loss.inputs.map(({ name, rank }): ProgramInput => {
    const { place, key } = located(loss, name, unit);
    const input = inputOf(loss, data, place, key);
    if (rank !== undefined) checkRank(loss, input.shape.length, rank, place, key);
    if (key !== 'logprobs') return input;
    const values = Float64Array.from(logprobs[place]!);
    if (values.length !== input.data.length)
      throw new ValidationError(`datum ${place} has ${values.length} logprobs for ${input.data.length} target tokens`);
    return { shape: input.shape, data: values };
  });
  try {
    return loss.program.run(given, held);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const where = unit.length === 1 ? `datum ${unit[0]}` : `datums ${unit.join(' and ')}`;
    throw new ValidationError(`the loss ${loss.name} failed on ${where}: ${error.message}`, { cause: error });
  }
}

/** Which datum an input is read from, and under which name. */
function located({ unit }: TracedLoss, name: string, places: readonly number[]): { place: number; key: string } {
  if (unit === 'datum') return { place: places[0]!, key: name };
  const [side] = name.split('_', 1);
  return { place: places[side === 'chosen' ? 0 : 1]!, key: name.slice(side!.length + 1) };
}

function inputOf(loss: TracedLoss, data: readonly Datum[], place: number, key: string): ProgramInput {
  const { name, tensor } = lossInput(data[place]!, key);
  if (tensor === undefined)
    throw new ValidationError(`data[${place}].lossFnInputs.${name} is missing: the loss ${loss.name} takes it`);
  const { shape, data: values } = namedTensor(name, tensor).toDense();
  return { shape, data: Float64Array.from(values) };
}

/** Where an input is read from if the data does not have it under its own name. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  // Sampled data has the logprobs it was sampled with under the name that a loss has the model's under.
  old_logprobs: 'logprobs',
  mask: 'weights',
};

/** The tensor a datum has for an input of a loss: the shape of `logprobs` is that of the targets. */
export function lossInput(
  { lossFnInputs }: Datum,
  key: string,
): { readonly name: string; readonly tensor: TensorInput | undefined } {
  if (key === 'logprobs') return { name: 'target_tokens', tensor: lossFnInputs['target_tokens'] };
  const other = OTHER_NAMES[key];
  const name =
    lossFnInputs[key] === undefined && other !== undefined && lossFnInputs[other] !== undefined ? other : key;
  return { name, tensor: lossFnInputs[name] };
}
