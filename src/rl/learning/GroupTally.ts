import type { ScoredGroup } from './advantages.js';

type Metrics = Record<string, number>;
/** From which reward on the public cookbook calls an answer good. */
const GOOD = 0.5;

/** What groups were like, added up as they come, so that they need not be held: the metrics under the cookbook's names. */
export class GroupTally {
  readonly #all = new EnvironmentTally();
  readonly #byTag = new Map<string, EnvironmentTally>();
  readonly #counts: Metrics = {};
  readonly #steps = new Spread();
  readonly #seconds = new Spread();

  add(group: ScoredGroup): void {
    this.#all.add(group);
    for (const tag of new Set(group.tags)) {
      const tagged = this.#byTag.get(tag) ?? new EnvironmentTally();
      this.#byTag.set(tag, tagged);
      tagged.add(group);
    }
    for (const { name } of group.failures) {
      this.#count('rollout_errors/total');
      this.#count(`rollout_errors/${name}`);
    }
    if (group.dropped !== undefined) this.#count(`groups/dropped_${group.dropped.replace('-', '_')}`);
    for (const { step } of group.trajectories) this.#steps.add(step);
    this.#seconds.add(group.durationMs / 1000);
  }

  get groups(): number {
    return this.#all.groups;
  }

  /** Under `env/all`, and under `env/<tag>` where a tag does not hold for all groups. */
  environment(): Metrics {
    const metrics: Metrics = {};
    const tagged = [...this.#byTag];
    if (tagged.some(([, tally]) => tally.groups < this.#all.groups)) {
      for (const [tag, tally] of tagged) tally.write(metrics, `env/${tag}/`);
    }
    this.#all.write(metrics, 'env/all/');
    return metrics;
  }

  /** All of them, for step `index`: also failures by the name of their error, and how old the weights were that groups came from. */
  metrics(index: number): Metrics {
    const metrics = { ...this.environment(), ...this.#counts };
    if (this.#steps.count === 0) return metrics;
    const { least, most, mean } = this.#steps;
    return {
      ...metrics,
      'sampling_client/step_min': least,
      'sampling_client/step_max': most,
      'sampling_client/step_mean': mean,
      'policy/age_min': index - most,
      'policy/age_max': index - least,
      'policy/age_mean': index - mean,
      'time/sampling_time_min': this.#seconds.least,
      'time/sampling_time_max': this.#seconds.most,
      'time/sampling_time_mean': this.#seconds.mean,
    };
  }

  #count(name: string): void {
    this.#counts[name] = (this.#counts[name] ?? 0) + 1;
  }
}

class Spread {
  least = Infinity;
  most = -Infinity;
  count = 0;
  #sum = 0;

  get mean(): number {
    return this.#sum / this.count;
  }

  add(value: number): void {
    this.least = Math.min(this.least, value);
    this.most = Math.max(this.most, value);
    this.count++;
    this.#sum += value;
  }
}

/** What the trajectories of one kind of task were like. */
class EnvironmentTally {
  groups = 0;
  #episodes = 0;
  #turns = 0;
  #sampled = 0;
  #observed = 0;
  #reward = 0;
  /** A map: every object has a `constructor`, to which nothing can be added. */
  readonly #sums = new Map<string, number>();
  readonly #kinds = { mixed: 0, all_good: 0, all_bad: 0 };

  add({ trajectories }: ScoredGroup): void {
    this.groups++;
    for (const { turns, reward, metrics = {} } of trajectories) {
      this.#episodes++;
      this.#turns += turns.length;
      for (const { prompt, sequence } of turns) {
        this.#sampled += sequence.tokens.length;
        this.#observed += prompt.length;
      }
      this.#reward += reward;
      for (const [name, value] of Object.entries(metrics)) this.#sums.set(name, (this.#sums.get(name) ?? 0) + value);
    }
    const [first] = trajectories;
    if (first === undefined) return;
    if (trajectories.some(({ reward }) => reward !== first.reward)) this.#kinds.mixed++;
    else this.#kinds[first.reward >= GOOD ? 'all_good' : 'all_bad']++;
  }

  write(metrics: Metrics, prefix: string): void {
    const ratio = (part: number, whole: number) => (whole === 0 ? 0 : part / whole);
    const set = (name: string, value: number) => (metrics[prefix + name] = value);
    set('ac_tokens_per_turn', ratio(this.#sampled, this.#turns));
    set('ob_tokens_per_turn', ratio(this.#observed, this.#turns));
    set('turns_per_episode', ratio(this.#turns, this.#episodes));
    set('total_episodes', this.#episodes);
    set('total_turns', this.#turns);
    set('total_ac_tokens', this.#sampled);
    set('total_ob_tokens', this.#observed);
    set('reward/total', ratio(this.#reward, this.#episodes));
    // Over all trajectories: a mean over those that have the name would always read 1 for `stop/…`.
    for (const [name, sum] of this.#sums) set(name, ratio(sum, this.#episodes));
    const finished = this.#kinds.mixed + this.#kinds.all_good + this.#kinds.all_bad;
    for (const [kind, count] of Object.entries(this.#kinds)) set(`by_group/frac_${kind}`, ratio(count, finished));
  }
}
