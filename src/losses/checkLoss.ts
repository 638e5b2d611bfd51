import { concatMap, defer, from, map, of, type Observable, type ObservableInput } from 'rxjs';
import { checkAtLeast, checkPositive } from '../support/checks.js';
import type { Datum } from '../wire/datum.js';
import type { ForwardBackwardOutput } from '../wire/training.js';
import { ValidationError } from '../wire/tinkerError.js';
import { evaluateLoss, type Held, lossInput, runUnit, unitsOf, type DatumLogprobs } from './evaluateLoss.js';
import type { TracedLoss } from './TracedLoss.js';

/** What `checkLoss` needs of a trainer. A `TrainingClient` is one. */
export interface LossChecker {
  /** Computes a loss without gradients, as `TrainingClient.forward` does. */
  forward(data: readonly Datum[], loss: 'cross_entropy' | TracedLoss): ObservableInput<ForwardBackwardOutput>;
}

/** Options of `checkLoss`. */
export interface CheckLossOptions {
  /** Gives the logprobs, and the loss as the service computes it. Default: none; logprobs are made up, the service is not asked. */
  readonly trainer?: LossChecker;
  /** The logprobs to check at, one array per datum. Default: the trainer's, else made up: −0.1 to −3. */
  readonly logprobs?: readonly DatumLogprobs[];
  /** How far numbers may be apart, relative to the larger one or to 1. Default 1e-3. */
  readonly tolerance?: number;
  /** At how many logprobs per datum the derivative is compared. Default 64, spread evenly. */
  readonly places?: number;
}

/** The derivative that is farthest from its finite difference. */
export interface GradientCheck {
  /** Index of the datum, counted from 0. */
  readonly datum: number;
  /** Index of the position in it, counted from 0. */
  readonly place: number;
  /** The derivative that was recorded. */
  readonly derivative: number;
  /** The derivative as a small change of the logprob shows it. */
  readonly finiteDifference: number;
  /** Relative to the larger of the two, or to 1. */
  readonly error: number;
}

/** What `checkLoss` found. */
export interface LossCheck {
  /** Whether everything agrees within the tolerance. */
  readonly ok: boolean;
  /** The loss as evaluated here. */
  readonly loss: number;
  /** The loss's metrics, by name. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Absent if no logprob was compared. */
  readonly worst?: GradientCheck;
  /** The loss through the trainer: by the service where it runs losses, else here. Absent without a trainer. */
  readonly trainer?: {
    /** The loss as the service computes it. */
    readonly loss: number;
    /** The service's metrics, by name. */
    readonly metrics: Readonly<Record<string, number>>;
    /** How far it is from the loss computed here, relative. */
    readonly error: number;
  };
}

/**
 * Compares a loss with itself, on a small batch: its derivative with finite differences, and its value here with its
 * value on the service.
 *
 * ```ts
 * const check = await firstValueFrom(checkLoss(loss, data.slice(0, 4), { trainer }));
 * ```
 * Sends nothing before it is subscribed to, and adds no gradients to the trainer. Detached values stay as they are while the others move. Where a loss has a kink (a clip, a
 * maximum) and a logprob lies on it, derivative and difference may rightly differ. Emits once and completes; errors are those of
 * the trainer, or a ValidationError for data that lacks an input.
 */
export function checkLoss(
  loss: TracedLoss,
  data: readonly Datum[],
  options: CheckLossOptions = {},
): Observable<LossCheck> {
  const { trainer, tolerance = 1e-3, places = 64 } = options;
  checkPositive({ tolerance });
  checkAtLeast({ places }, 1);
  return defer(() => {
    const logprobs =
      options.logprobs !== undefined
        ? of(options.logprobs)
        : trainer === undefined
          ? of(madeUp(data))
          : from(trainer.forward(data, 'cross_entropy')).pipe(map(logprobsOf));
    return logprobs.pipe(
      map((found) => {
        const { loss: value, metrics } = evaluateLoss(loss, data, found);
        const worst = worstGradient(loss, data, found, places);
        return { ok: worst === undefined || worst.error <= tolerance, loss: value, metrics, ...(worst && { worst }) };
      }),
      concatMap((here): ObservableInput<LossCheck> =>
        trainer === undefined || options.logprobs !== undefined
          ? of(here)
          : from(trainer.forward(data, loss)).pipe(
              map(({ metrics }) => {
                const through = metrics['loss:sum'] ?? NaN;
                const error = Math.max(
                  relative(here.loss, through),
                  ...Object.entries(here.metrics).map(([key, value]) => relative(value, metrics[key] ?? NaN)),
                );
                return { ...here, ok: here.ok && error <= tolerance, trainer: { loss: through, metrics, error } };
              }),
            ),
      ),
    );
  });
}

function worstGradient(
  loss: TracedLoss,
  data: readonly Datum[],
  logprobs: readonly DatumLogprobs[],
  most: number,
): GradientCheck | undefined {
  let worst: GradientCheck | undefined;
  for (const unit of unitsOf(loss, data)) {
    const held: Held = new Map();
    const { gradients } = runUnit(loss, data, logprobs, unit, held);
    const at = (changed: readonly DatumLogprobs[]): number => runUnit(loss, data, changed, unit, held).loss;
    unit.forEach((datum, side) => {
      const values = Float64Array.from(logprobs[datum]!);
      const stride = Math.max(1, Math.ceil(values.length / most));
      for (let place = 0; place < values.length; place += stride) {
        const derivative = gradients[side]![place]!;
        const finiteDifference = difference(at, logprobs, datum, place);
        const error = relative(derivative, finiteDifference);
        if (worst === undefined || !(error <= worst.error))
          worst = { datum, place, derivative, finiteDifference, error };
      }
    });
  }
  return worst;
}

/** The central difference of the loss by one logprob. */
function difference(
  loss: (logprobs: readonly DatumLogprobs[]) => number,
  logprobs: readonly DatumLogprobs[],
  datum: number,
  place: number,
): number {
  const at = (moved: number): number => {
    const values = Float64Array.from(logprobs[datum]!);
    values[place] = moved;
    return loss(logprobs.map((each, index) => (index === datum ? values : each)));
  };
  const center = Number(logprobs[datum]![place]);
  const step = 1e-5 * Math.max(1, Math.abs(center));
  return (at(center + step) - at(center - step)) / (2 * step);
}

/** A difference relative to the larger number, or to 1. Infinite where one of them is not finite. */
function relative(a: number, b: number): number {
  const away = Math.abs(a - b) / Math.max(1, Math.abs(a), Math.abs(b));
  return Number.isFinite(away) ? away : Infinity;
}

function logprobsOf({ lossFnOutputs }: ForwardBackwardOutput): readonly DatumLogprobs[] {
  return lossFnOutputs.map((output, index) => {
    const tensor = output['logprobs'];
    if (tensor === undefined) throw new ValidationError(`the forward pass gave no logprobs for datum ${index}`);
    return Float64Array.from(tensor.toDense().data);
  });
}

/** Logprobs like those of a model that knows a little, the same every time. */
function madeUp(data: readonly Datum[]): readonly Float64Array[] {
  return data.map((datum, index) => {
    const { tensor } = lossInput(datum, 'logprobs');
    if (tensor === undefined) throw new ValidationError(`data[${index}].lossFnInputs.target_tokens is missing`);
    const size = countOf(tensor);
    return Float64Array.from({ length: size }, (_, place) => -0.1 - 2.9 * (((place + 7 * index) * 0.618034) % 1));
  });
}

function countOf(tensor: Datum['lossFnInputs'][string]): number {
  if ('shape' in tensor) return tensor.shape.reduce((product, extent) => product * extent, 1);
  return (tensor as readonly (number | readonly number[])[]).reduce<number>(
    (sum, entry) => sum + (Array.isArray(entry) ? entry.length : 1),
    0,
  );
}
