import { seededRandom } from '../../../src/support/random.js';

const TOKENS = [
  '\n',
  '\r',
  '"',
  '\\',
  '\0',
  '\u2028',
  '{',
  '[',
  ']',
  '}',
  ',',
  ':',
  'null',
  '1e999',
  '-',
  '\ud800',
  '__proto__',
  '{{',
  '%}',
];
const VALUES: readonly unknown[] = [
  ...[null, true, -1, 0, 0.5, 1e308, 2 ** 31, 2 ** 53, -(2 ** 63), '', 'NaN', '\u001b[2J', 'constructor', [], {}],
  ...[[[]], [null], { __proto__: null, constructor: 1 }, 'x'.repeat(5000), Array.from({ length: 300 }, () => -1)],
];

/** Changes that break what reads bytes, by a seed: the same seed makes the same inputs. */
export class Mutator {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }

  /** The bytes with one to four changes. */
  bytes(seed: Uint8Array): Uint8Array {
    let bytes = Buffer.from(seed);
    for (let changes = 1 + this.below(4); changes > 0; changes--) bytes = this.#change(bytes);
    return bytes;
  }

  #change(bytes: Buffer): Buffer<ArrayBuffer> {
    const at = this.below(bytes.length + 1);
    const end = Math.min(bytes.length, at + 1 + this.below(8));
    const around = (middle: Uint8Array): Buffer<ArrayBuffer> =>
      Buffer.concat([bytes.subarray(0, at), middle, bytes.subarray(end)]);
    switch (this.below(8)) {
      case 0: {
        const changed = Buffer.from(bytes);
        if (at < changed.length) changed[at] = changed[at]! ^ (1 << this.below(8));
        return changed;
      }
      case 1:
        return Buffer.from(bytes.subarray(0, at));
      case 2:
        return around(new Uint8Array());
      case 3:
        // Lengths and counts: as large as they can be.
        return around(Uint8Array.from({ length: end - at }, () => 0xff));
      case 4:
        return around(Uint8Array.from({ length: end - at }, () => this.below(256)));
      case 5:
        return Buffer.concat([bytes.subarray(0, at), Buffer.from(this.pick(TOKENS)), bytes.subarray(at)]);
      case 6:
        return Buffer.concat([bytes.subarray(0, end), bytes.subarray(this.below(bytes.length + 1))]);
      default:
        return around(new Uint8Array(end - at));
    }
  }

  /** The value with one place in it replaced, removed, doubled or buried. */
  json(value: unknown): unknown {
    const copy = structuredClone({ root: value }) as Record<string, unknown>;
    const places: [holder: Record<string, unknown>, key: string][] = [];
    const walk = (holder: Record<string, unknown>): void => {
      for (const key of Object.keys(holder)) {
        places.push([holder, key]);
        const inner = holder[key];
        if (typeof inner === 'object' && inner !== null) walk(inner as Record<string, unknown>);
      }
    };
    walk(copy);
    const [holder, key] = this.pick(places);
    const old = holder[key];
    switch (this.below(5)) {
      case 0:
        if (Array.isArray(holder)) holder.splice(Number(key), 1);
        else delete holder[key];
        break;
      case 1:
        holder[key] = this.pick(VALUES);
        break;
      case 2:
        holder[key] = Array.isArray(old) ? [...(old as unknown[]), ...(old as unknown[])] : [old];
        break;
      case 3:
        Object.defineProperty(holder, this.pick(['__proto__', 'constructor', 'toString', 'type', '0']), {
          ...{ value: this.pick(VALUES), enumerable: true, configurable: true, writable: true },
        });
        break;
      default:
        holder[key] = typeof old === 'number' ? old * this.pick([-1, 0, 1e9, 1e300, 0.5]) : deep(old);
    }
    return copy['root'];
  }
}

/** So deep that a careless walk overflows the stack. */
function deep(value: unknown): unknown {
  let nested = value;
  for (let level = 0; level < 3000; level++) nested = [nested];
  return nested;
}
