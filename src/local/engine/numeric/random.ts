import { mix32 } from '../../../support/random.js';

/** A seeded stream of numbers (sfc32): small, fast, and the same on every machine. */
export interface Random {
  /** In [0, 1), with 53 random bits. */
  uniform(): number;
  /** Mean 0, variance 1. */
  normal(): number;
}

/** The stream for `seed` (any safe integer) and `stream`: different streams of one seed are independent. */
export function createRandom(seed: number, stream = 0): Random {
  const low = seed >>> 0;
  const high = Math.floor(seed / 0x1_0000_0000) >>> 0;
  let a = mix32(low ^ 0x9e3779b9);
  let b = mix32(high ^ mix32(stream + 0x85ebca6b));
  let c = mix32(a ^ stream);
  let counter = 1;
  const next = (): number => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return sum >>> 0;
  };
  for (let index = 0; index < 12; index++) next();
  const uniform = () => ((next() >>> 5) * 0x400_0000 + (next() >>> 6)) / 0x20_0000_0000_0000;
  let spare: number | undefined;
  const normal = () => {
    if (spare !== undefined) {
      const value = spare;
      spare = undefined;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - uniform()));
    const angle = 2 * Math.PI * uniform();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
  return { uniform, normal };
}
