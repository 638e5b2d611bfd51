import { from, map, mergeMap, type Observable, of, toArray } from 'rxjs';
import { ValidationError } from '../../wire/tinkerError.js';
import type { Group } from '../sampling/rollout.js';
import type { ScoredGroup } from './advantages.js';
import type { PreparedGroup } from './BatchMaker.js';
import type { KlPenaltyOptions } from './GrpoOptions.js';
import { penalized } from './klPenalty.js';
import type { Plan } from './planOf.js';
import { groupData, type MaskedDatum } from './trajectoryData.js';
import type { Datum } from '../../wire/datum.js';
import type { ModelInput } from '../../wire/modelInput.js';
import type { TensorData } from '../../wire/tensor.js';

/**
 * The group with its datums, and with their log probabilities under the reference where there is a penalty. `onSplit` is told
 * why a trajectory needs more than one datum.
 */
export function prepareGroup<T, S>(
  group: ScoredGroup<T>,
  plan: Plan<S>,
  onSplit: (reason: string | undefined) => void,
): Observable<PreparedGroup<T>> {
  if (!group.teaches) return of({ group, data: [], splits: 0 });
  checkSampling(group, plan);
  const { data, splits, splitReason } = groupData(group);
  if (splits > 0) onSplit(splitReason);
  if (plan.klPenalty === undefined) return of({ group, data, splits });
  return referenceLogprobs(data, plan.klPenalty).pipe(map((reference) => ({ group, data, splits, reference })));
}

/** What is trained on of a part of a batch, with the penalty where there is one. */
export function trainedOn<S>(
  part: readonly PreparedGroup<unknown>[],
  { klPenalty }: Plan<S>,
): { readonly data: readonly MaskedDatum[]; readonly kl?: number } {
  const data = part.flatMap((prepared) => prepared.data);
  if (klPenalty === undefined) return { data };
  const reference = part.flatMap((prepared) => prepared.reference ?? []);
  return penalized(data, reference, klPenalty.coefficient, klPenalty.discount ?? 0);
}

/** Servers disagree on what log probabilities they return for altered distributions, so ratios would be wrong unseen. */
function checkSampling<S>({ trajectories, order }: Group, { acceptAlteredSampling, loss }: Plan<S>): void {
  if (acceptAlteredSampling || typeof loss.loss !== 'string') return;
  for (const { turns } of trajectories) {
    const altered = turns.find((turn) => turn.altered !== undefined)?.altered;
    if (altered === undefined) continue;
    throw new ValidationError(
      `group ${order} was sampled with ${altered}, and ${loss.loss} compares its log probabilities with the trainer's: ` +
        'sample with temperature 1, without top-p and top-k, or say acceptAlteredSampling',
    );
  }
}

function referenceLogprobs(
  data: readonly MaskedDatum[],
  { reference, concurrency = 64 }: KlPenaltyOptions,
): Observable<readonly Float32Array[]> {
  if (data.length === 0) return of([]);
  return from(data.entries()).pipe(
    mergeMap(
      ([index, { datum }]) =>
        from(reference.computeLogprobs(wholeSequence(datum))).pipe(map((values) => ({ index, values }))),
      concurrency,
    ),
    toArray(),
    map((found) => found.sort((a, b) => a.index - b.index).map(({ values }) => values)),
  );
}

/** The sequence a datum was made of: its input, and the last token it predicts. */
export function wholeSequence({ modelInput, lossFnInputs }: Datum): ModelInput {
  return modelInput.appendInt((lossFnInputs['target_tokens'] as TensorData).data.at(-1)!);
}
