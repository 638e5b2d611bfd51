import type { DashboardSample } from '../../state/changes.js';

export type SampleOrder = 'newest' | 'unlikely' | 'best' | 'worst';

export interface SampleQuestion {
  readonly text: string;
  /** '' for any. */
  readonly run: string;
  readonly stop: string;
  readonly order: SampleOrder;
}

/** Samples do not change: what was put together for one stays good as long as it lives. */
const texts = new WeakMap<DashboardSample, string>();
const means = new WeakMap<DashboardSample, number>();

/** The samples that answer a question, in its order. */
export function select(
  samples: readonly DashboardSample[],
  { text, run, stop, order }: SampleQuestion,
): DashboardSample[] {
  const wanted = text.trim().toLowerCase();
  const found = samples.filter(
    (sample) =>
      (run === '' || sample.run === run) &&
      (stop === '' || sample.stopReason === stop) &&
      (wanted === '' || searched(sample).includes(wanted)),
  );
  switch (order) {
    case 'newest':
      return found.reverse();
    case 'unlikely':
      return found.sort((a, b) => order0(meanLogprob(a)) - order0(meanLogprob(b)));
    case 'best':
      return found.sort((a, b) => (b.reward ?? -Infinity) - (a.reward ?? -Infinity));
    case 'worst':
      return found.sort((a, b) => (a.reward ?? Infinity) - (b.reward ?? Infinity));
  }
}

/** Samples without a value come last. */
const order0 = (mean: number): number => (Number.isNaN(mean) ? Infinity : mean);

/** Per piece; NaN if none is known. */
export function meanLogprob(sample: DashboardSample): number {
  const there = means.get(sample);
  if (there !== undefined) return there;
  const known = (sample.logprobs ?? []).filter((logprob) => logprob !== null);
  const mean = known.reduce((sum, logprob) => sum + logprob, 0) / known.length;
  means.set(sample, mean);
  return mean;
}

function searched(sample: DashboardSample): string {
  const there = texts.get(sample);
  if (there !== undefined) return there;
  const text = `${sample.prompt}${sample.pieces.join('')}`.toLowerCase();
  texts.set(sample, text);
  return text;
}
