import { datumsFromTurns } from '../../chat/datum/datumsFromTurns.js';
import type { Datum } from '../../wire/datum.js';
import { TensorData } from '../../wire/tensor.js';
import type { ScoredGroup } from './advantages.js';
import type { Trajectory } from '../sampling/rollout.js';

/** A datum, with which of its positions are trained on: 1, or 0. */
export interface MaskedDatum {
  readonly datum: Datum;
  readonly mask: Float32Array;
}

/** What a group gives to train on. */
export interface GroupData {
  readonly data: readonly MaskedDatum[];
  /** How many trajectories needed more than one datum, and why the first of them did. */
  readonly splits: number;
  readonly splitReason: string | undefined;
}

/** The datums of all trajectories of a group that have a token to train on. */
export function groupData(group: ScoredGroup): GroupData {
  const data: MaskedDatum[] = [];
  let splits = 0;
  let splitReason: string | undefined;
  group.trajectories.forEach((trajectory, index) => {
    const made = trajectoryData(group, trajectory, group.advantages[index]!);
    if (made.length > 1) {
      splits++;
      splitReason ??= whySplit(trajectory);
    }
    for (const each of made) if (each.mask.includes(1)) data.push(each);
  });
  return { data, splits, splitReason };
}

function trajectoryData({ scoring }: ScoredGroup, { turns }: Trajectory, advantage: number): MaskedDatum[] {
  const { given, perSequence, maskCutOff } = scoring;
  const cutOff = maskCutOff && turns.at(-1)!.sequence.stopReason === 'length';
  const trained = turns.filter(({ masked }) => masked !== true);
  const share = perSequence
    ? Math.max(
        1,
        trained.reduce((sum, { sequence }) => sum + sequence.tokens.length, 0),
      )
    : 1;
  const shared = (value: number | ArrayLike<number>) =>
    typeof value === 'number' ? value / share : Array.from(value, (each) => each / share);
  const sampled = turns.map((turn) => ({
    prompt: turn.prompt,
    sequence: turn.sequence,
    masked: cutOff || turn.masked === true,
    advantage: shared(given ? (turn.advantage ?? advantage) : advantage),
  }));
  return datumsFromTurns(sampled, { sequenceRatioMask: true }).map((datum) => ({
    datum,
    mask: (datum.lossFnInputs['sequence_ratio_mask'] as TensorData).data as Float32Array,
  }));
}

/** Says where a prompt stops being what came before it. */
function whySplit({ turns }: Trajectory): string {
  for (let place = 1; place < turns.length; place++) {
    const before = turns[place - 1]!;
    const seen = [...tokensOf(before.prompt), ...before.sequence.tokens];
    const prompt = tokensOf(turns[place]!.prompt);
    const differs = seen.findIndex((token, at) => token !== prompt[at]);
    if (differs >= 0) {
      const promptLength = seen.length - before.sequence.tokens.length;
      const where =
        differs < promptLength
          ? `at position ${differs}, inside the earlier prompt`
          : `at position ${differs}, token ${differs - promptLength} of what was sampled`;
      return `the prompt of turn ${place + 1} differs from turn ${place} ${where}`;
    }
  }
  return 'a prompt does not extend the turn before it';
}

function tokensOf({ chunks }: Trajectory['turns'][number]['prompt']): number[] {
  return chunks.flatMap((chunk) => (chunk.type === 'encoded_text' ? Array.from(chunk.tokens) : [-1]));
}

/** The datum as the loss wants it: the mask stays only where it is asked for. */
export function forLoss({ datum }: MaskedDatum, keepsMask: boolean): Datum {
  if (keepsMask) return datum;
  const { sequence_ratio_mask: _, ...lossFnInputs } = datum.lossFnInputs;
  return { ...datum, lossFnInputs };
}

/** The values of one tensor of a datum. */
export function valuesOf({ lossFnInputs }: Datum, name: string): Float32Array {
  return (lossFnInputs[name] as TensorData).data as Float32Array;
}

/** The datum with other advantages. */
export function withAdvantages(masked: MaskedDatum, advantages: Float32Array): MaskedDatum {
  const { datum, mask } = masked;
  const lossFnInputs = { ...datum.lossFnInputs, advantages: TensorData.from(advantages, 'float32') };
  return { mask, datum: { ...datum, lossFnInputs } };
}
