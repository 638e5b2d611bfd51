import { Observable } from 'rxjs';
import { checkAtLeast } from '../../support/checks.js';
import { Gate, withGate } from '../pressure/gate.js';
import { Downstream, type Heard, listen } from '../pressure/shared/listen.js';
import { seededRandom } from '../../support/random.js';
import { WatchedQueue } from '../pressure/shared/backpressureEvents.js';

/** One of the sources to mix. */
export interface Dataset<T> {
  /** Its values. */
  readonly source: Observable<T>;
  /** Its share of the mix, relative to the others: > 0. Default 1. */
  readonly weight?: number;
}

/** Options of `interleave`. */
export interface InterleaveOptions {
  /** Draws the next dataset at random with this seed. Default: by turns, spread as evenly as the weights allow. */
  readonly seed?: number;
  /** When to end: with the last dataset (default), the others then share what is left; or with the first, keeping the mix. */
  readonly until?: 'all' | 'first';
  /** How many values of each dataset are kept ready: ≥ 1. Default 16. */
  readonly prefetch?: number;
}

interface Input<T> {
  readonly weight: number;
  readonly gate: Gate;
  readonly ready: WatchedQueue<T>;
  credit: number;
  ended: boolean;
  /** Whether another dataset is fed by the same source. */
  shared: boolean;
}

/**
 * Mixes datasets by weight; which one comes next never depends on how fast they are.
 *
 * ```
 * a         -a-a-a-|               weight 2
 * b         ----------b----b-|     weight 1
 * result    -a--------(baa)b-|
 * ```
 * An error of any dataset ends the mix at once. It completes with the last dataset, or with the first. Unsubscribing
 * stops all. Each dataset has its own {@link Gate}, closed while `prefetch` of its values are ready; values of
 * sources that know of no gate are queued without bound. Nothing is emitted while the gate downstream is closed.
 *
 * To repeat a small dataset until a large one ends: `{ source: small.pipe(repeatEpochs()) }` and `until: 'first'`.
 */
export function interleave<T>(
  datasets: readonly Dataset<T>[],
  { seed, until = 'all', prefetch = 16 }: InterleaveOptions = {},
): Observable<T> {
  for (const { weight = 1 } of datasets) {
    if (!(weight > 0 && weight < Infinity)) throw new RangeError(`weight must be finite and > 0, got ${weight}`);
  }
  checkAtLeast({ prefetch }, 1);
  if (seed !== undefined) seededRandom(seed);
  return new Observable((subscriber) => {
    const draw = seed === undefined ? undefined : seededRandom(seed);
    let chosen: Input<T> | undefined;
    let busy = false;
    const everyone = datasets.map(({ weight = 1 }): Input<T> => ({
      weight,
      gate: new Gate(),
      ready: new WatchedQueue('interleave'),
      credit: 0,
      ended: false,
      shared: false,
    }));
    let inputs: readonly Input<T>[] = everyone;
    const settle = ({ gate, ready, shared }: Input<T>) =>
      gate.set(subscriber.closed || shared || ready.length < prefetch);

    const choose = (): Input<T> | undefined => {
      const total = inputs.reduce((sum, { weight }) => sum + weight, 0);
      if (draw !== undefined) {
        let rest = draw() * total;
        return inputs.find(({ weight }) => (rest -= weight) < 0) ?? inputs.at(-1);
      }
      // Everyone earns its weight, the richest goes and pays the total: shares are exact and evenly spread.
      let richest: Input<T> | undefined;
      for (const input of inputs) {
        input.credit += input.weight;
        if (richest === undefined || input.credit > richest.credit) richest = input;
      }
      if (richest !== undefined) richest.credit -= total;
      return richest;
    };

    const advance = () => {
      if (busy) return;
      busy = true;
      while (!subscriber.closed) {
        if (!downstream.isOpen) {
          downstream.waitIfClosed();
          break;
        }
        chosen ??= choose();
        if (chosen === undefined) subscriber.complete();
        else if (chosen.ready.length > 0) {
          const input = chosen;
          chosen = undefined;
          subscriber.next(input.ready.shift());
          settle(input);
        } else if (chosen.ended) {
          const gone = chosen;
          chosen = undefined;
          inputs = until === 'first' ? [] : inputs.filter((input) => input !== gone);
        } else break;
      }
      busy = false;
    };

    const downstream = new Downstream<T>(subscriber, advance);
    const heard: Heard<T, Input<T>> = {
      next: (value, input) => {
        input.ready.push(value);
        advance();
        settle(input);
      },
      complete: (input) => {
        input.ended = true;
        advance();
      },
      // Datasets of one shared source: the one that was subscribed first must not stop the others.
      under: (gate, input) => {
        const other = everyone.find((each) => each.gate === gate);
        if (other === undefined || other === input || other.shared) return;
        other.shared = true;
        other.gate.set(true);
      },
    };
    everyone.forEach((input, index) => {
      withGate(input.gate, () => listen(datasets[index]!.source, downstream, heard, input));
    });
    // Behind the sources, which must stop; other subscribers continue.
    subscriber.add(() => everyone.forEach(({ gate }) => gate.set(true)));
    advance();
  });
}
