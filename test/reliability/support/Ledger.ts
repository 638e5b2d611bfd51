import { createHash, type Hash } from 'node:crypto';
import type { EnginePort } from '../../../src/local/enginePort.js';
import type { EngineDatum, ModelState } from '../../../src/local/engine/types.js';

/** Work that the service has carried out on a model: what, and a digest of everything it was given. */
type Applied = `${'forward' | 'forward_backward' | 'optim_step'} ${string}`;

/** What one list of applied work is, held against another. */
export interface Difference {
  readonly applied: number;
  readonly lost: number;
  readonly doubled: number;
  readonly outOfOrder: number;
}

/**
 * What the service's engine has done, in order, seen from inside the service. Work on a model that was resumed continues
 * the list of the model it was saved from, as its weights do: what was done after that save, and is gone, is taken out.
 */
export class Ledger {
  readonly #work = new Map<string, Applied[]>();
  /** How much of the list each saved state holds. */
  readonly #saved = new Map<string, readonly Applied[]>();
  #last: string | undefined;
  /** A digest of the last state that was saved to go on from. */
  weights: string | undefined;
  samples = 0;
  /** Work that was refused or failed inside the engine. */
  failed = 0;

  /** The work behind the weights that were trained last. */
  get work(): readonly Applied[] {
    return this.#last === undefined ? [] : this.#work.get(this.#last)!;
  }

  /** How many models have been worked on. */
  get models(): number {
    return this.#work.size;
  }

  /** The engine, watched. */
  watch(engine: EnginePort): EnginePort {
    const note = async <A>(modelId: string, entry: Applied, run: Promise<A>): Promise<A> => {
      try {
        const result = await run;
        this.#of(modelId).push(entry);
        this.#last = modelId;
        return result;
      } catch (error) {
        this.failed++;
        throw error;
      }
    };
    const watched: Partial<EnginePort> = {
      forwardBackward: (modelId, data, loss, config, options) => {
        const kind = options?.forwardOnly === true ? 'forward' : 'forward_backward';
        // The config of an uploaded loss names its session, which is another one in every run.
        const what = typeof loss === 'string' ? [loss, config] : 'uploaded';
        const entry: Applied = `${kind} ${digest(what, data.map(parts))}`;
        return note(modelId, entry, engine.forwardBackward(modelId, data, loss, config, options));
      },
      optimStep: (modelId, adam) => note(modelId, `optim_step ${digest(adam)}`, engine.optimStep(modelId, adam)),
      exportState: async (modelId, options) => {
        const state = await engine.exportState(modelId, options);
        this.#saved.set(digestOf(state), [...this.#of(modelId)]);
        if (state.optimizer !== undefined) this.weights = digestOf(state);
        return state;
      },
      loadState: async (modelId, state, options) => {
        await engine.loadState(modelId, state, options);
        const before = this.#saved.get(digestOf(state));
        if (before !== undefined) this.#work.set(modelId, [...before]);
      },
      sample: async (...call) => {
        const result = await engine.sample(...call);
        this.samples++;
        return result;
      },
    };
    return new Proxy(engine, {
      get: (target, key) => {
        const own = watched[key as keyof EnginePort];
        if (own !== undefined) return own;
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
      },
    });
  }

  #of(modelId: string): Applied[] {
    let list = this.#work.get(modelId);
    if (list === undefined) this.#work.set(modelId, (list = []));
    return list;
  }
}

/** A digest of weights, moments and step: the same for the same bits. */
const digestOf = ({ step, weights, optimizer }: ModelState): string =>
  digest(step, weights, optimizer?.m, optimizer?.v);

const parts = ({ tokens, inputs }: EngineDatum): unknown => [
  tokens,
  ...Object.entries(inputs).map(([name, { dtype, data, shape }]) => [name, dtype, shape, data]),
];

function digest(...values: readonly unknown[]): string {
  const hash = createHash('sha256');
  add(hash, values);
  return hash.digest('hex').slice(0, 16);
}

function add(hash: Hash, value: unknown): void {
  if (ArrayBuffer.isView(value)) {
    hash.update(`${value.constructor.name}:`);
    hash.update(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  } else if (Array.isArray(value)) {
    hash.update(`[${value.length}`);
    for (const each of value) add(hash, each);
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, each] of Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) {
      hash.update(`{${key}`);
      add(hash, each);
    }
  } else hash.update(`${typeof value}:${String(value)};`);
}

/** What is missing, what came twice and what came too early or too late in `actual`. */
export function compare(actual: readonly string[], expected: readonly string[]): Difference {
  const left = countOf(expected);
  let doubled = 0;
  for (const entry of actual) {
    const count = left.get(entry) ?? 0;
    if (count === 0) doubled++;
    else left.set(entry, count - 1);
  }
  const lost = [...left.values()].reduce((sum, count) => sum + count, 0);
  const outOfOrder = lost + doubled > 0 ? 0 : actual.filter((entry, index) => entry !== expected[index]).length;
  return { applied: actual.length, lost, doubled, outOfOrder };
}

function countOf(entries: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const entry of entries) counts.set(entry, (counts.get(entry) ?? 0) + 1);
  return counts;
}
