import type { TensorData } from '../../wire/tensor.js';
import type { ScoredGroup } from './advantages.js';
import { type MaskedDatum, valuesOf } from './trajectoryData.js';

type Metrics = Record<string, number>;
const GOOD = 0.5;

/** What trajectories were like: under `env/all`, and under `env/<tag>` where a tag does not hold for all groups. */
export function environmentMetrics(groups: readonly ScoredGroup[]): Metrics {
  const byTag = new Map<string, ScoredGroup[]>();
  for (const group of groups) {
    for (const tag of group.tags) byTag.set(tag, [...(byTag.get(tag) ?? []), group]);
  }
  const metrics: Metrics = {};
  if ([...byTag.values()].some((tagged) => tagged.length < groups.length)) {
    for (const [tag, tagged] of byTag) addMetrics(metrics, `env/${tag}/`, tagged);
  }
  addMetrics(metrics, 'env/all/', groups);
  return metrics;
}

function addMetrics(metrics: Metrics, prefix: string, groups: readonly ScoredGroup[]): void {
  const trajectories = groups.flatMap((group) => group.trajectories);
  const episodes = trajectories.length;
  let turns = 0;
  let sampled = 0;
  let observed = 0;
  let reward = 0;
  const sums: Metrics = {};
  for (const trajectory of trajectories) {
    turns += trajectory.turns.length;
    for (const { prompt, sequence } of trajectory.turns) {
      sampled += sequence.tokens.length;
      observed += prompt.length;
    }
    reward += trajectory.reward;
    for (const [name, value] of Object.entries(trajectory.metrics ?? {})) sums[name] = (sums[name] ?? 0) + value;
  }
  const ratio = (part: number, whole: number) => (whole === 0 ? 0 : part / whole);
  const set = (name: string, value: number) => (metrics[prefix + name] = value);
  set('ac_tokens_per_turn', ratio(sampled, turns));
  set('ob_tokens_per_turn', ratio(observed, turns));
  set('turns_per_episode', ratio(turns, episodes));
  set('total_episodes', episodes);
  set('total_turns', turns);
  set('total_ac_tokens', sampled);
  set('total_ob_tokens', observed);
  set('reward/total', ratio(reward, episodes));
  // Over all trajectories: a mean over those that have the name would always read 1 for `stop/…`.
  for (const [name, sum] of Object.entries(sums)) set(name, ratio(sum, episodes));
  const finished = groups.filter((group) => group.trajectories.length > 0);
  const kinds = { mixed: 0, all_good: 0, all_bad: 0 };
  for (const { trajectories: own } of finished) {
    const [first] = own;
    const kind = own.some((each) => each.reward !== first!.reward)
      ? 'mixed'
      : first!.reward >= GOOD
        ? 'all_good'
        : 'all_bad';
    kinds[kind]++;
  }
  for (const [kind, count] of Object.entries(kinds)) set(`by_group/frac_${kind}`, ratio(count, finished.length));
}

/** Failures by the name of their error, and groups that were not trained on. */
export function failureMetrics(groups: readonly ScoredGroup[]): Metrics {
  const metrics: Metrics = {};
  const add = (name: string) => (metrics[name] = (metrics[name] ?? 0) + 1);
  for (const group of groups) {
    for (const { name } of group.failures) {
      add('rollout_errors/total');
      add(`rollout_errors/${name}`);
    }
    if (group.dropped !== undefined) add(`groups/dropped_${group.dropped.replace('-', '_')}`);
  }
  return metrics;
}

/** From which weights groups were sampled, and how old these were when step `index` trained on them. */
export function policyMetrics(groups: readonly ScoredGroup[], index: number): Metrics {
  const steps = groups.flatMap(({ trajectories }) => trajectories.map(({ step }) => step));
  if (steps.length === 0) return {};
  const times = groups.map(({ durationMs }) => durationMs / 1000);
  const [least, most] = [Math.min(...steps), Math.max(...steps)];
  const mean = average(steps);
  return {
    'sampling_client/step_min': least,
    'sampling_client/step_max': most,
    'sampling_client/step_mean': mean,
    'policy/age_min': index - most,
    'policy/age_max': index - least,
    'policy/age_mean': index - mean,
    'time/sampling_time_min': Math.min(...times),
    'time/sampling_time_max': Math.max(...times),
    'time/sampling_time_mean': average(times),
  };
}

const average = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

const QUANTILES = { p01: 0.01, p50: 0.5, p99: 0.99, max: 1 };

/**
 * How far the trainer is from the sampler, over all tokens trained on: from the logprobs that the backward pass returns
 * anyway. Empty where it returned none.
 */
export function offPolicyMetrics(
  data: readonly MaskedDatum[],
  outputs: readonly Readonly<Record<string, TensorData>>[],
): Metrics {
  const differences: number[] = [];
  let sampledSum = 0;
  let squares = 0;
  let sum = 0;
  for (const [index, { datum, mask }] of data.entries()) {
    const trained = outputs[index]?.['logprobs']?.data;
    if (trained?.length !== mask.length) return {};
    const sampled = valuesOf(datum, 'logprobs');
    for (let place = 0; place < mask.length; place++) {
      if (mask[place] === 0) continue;
      const difference = sampled[place]! - trained[place]!;
      differences.push(difference);
      sampledSum += sampled[place]!;
      sum += difference;
      squares += difference * difference;
    }
  }
  const tokens = differences.length;
  if (tokens === 0) return {};
  // The ratio is exp(trainer − sampler); sorting its logarithm gives the same order.
  const sorted = Float32Array.from(differences, (difference) => -difference).sort();
  const quantiles = Object.entries(QUANTILES).map(([name, share]) => [
    `optim/ratio_${name}`,
    Math.exp(sorted[Math.min(tokens - 1, Math.floor(share * tokens))]!),
  ]);
  return {
    'optim/kl_sample_train_v1': sum / tokens,
    'optim/kl_sample_train_v2': squares / (2 * tokens),
    'optim/entropy': -sampledSum / tokens,
    ...(Object.fromEntries(quantiles) as Metrics),
  };
}
