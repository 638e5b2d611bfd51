import { prepareDatum, type Datum, type PreparedDatum } from '../../wire/datum.js';
import type { AdamParams, OptimizerParams } from '../../wire/optimizer.js';
import { ValidationError } from '../../wire/tinkerError.js';
import { LOSS_CONFIG_KEYS, LossFnConfig, LossFnType } from '../../wire/training.js';

/** @throws ValidationError naming the datum and the field. */
export function prepareData(data: readonly Datum[]): PreparedDatum[] {
  if (!Array.isArray(data)) throw new ValidationError('data must be a list of datums');
  if (data.length === 0) throw new ValidationError('data is empty: a pass needs at least one datum');
  return data.map((datum: Datum, index) => prepareDatum(datum, index));
}

export function checkLoss(lossFn: string, config: LossFnConfig | undefined): void {
  if (!LossFnType.is(lossFn))
    throw new ValidationError(`unknown loss ${JSON.stringify(lossFn)}: expected ${LossFnType.name}`);
  if (config !== undefined && !LossFnConfig.is(config))
    throw new ValidationError('lossFnConfig must hold finite numbers or strings');
  const taken: readonly string[] | undefined = (LOSS_CONFIG_KEYS as Partial<Record<LossFnType, readonly string[]>>)[
    lossFn
  ];
  if (taken === undefined) return;
  const takes = taken.length === 0 ? `${lossFn} takes none` : `${lossFn} takes ${taken.join(', ')}`;
  for (const key of Object.keys(config ?? {})) {
    if (!taken.includes(key)) throw new ValidationError(`lossFnConfig.${key} is unknown: ${takes}`);
  }
}

export function checkName(name: string): string {
  if (typeof name !== 'string' || name === '') throw new ValidationError('a checkpoint needs a name');
  return name;
}

/** Adam's parameters have no type; those of other families say which. */
export function chosenOptimizer(
  params: AdamParams | OptimizerParams,
): { readonly adamParams: AdamParams } | { readonly optimizerParams: OptimizerParams } {
  if (typeof params !== 'object' || params === null)
    throw new ValidationError('optimizer parameters must be an object');
  return 'type' in params ? { optimizerParams: params } : { adamParams: params };
}
