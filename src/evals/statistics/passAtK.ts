import { checkIntegers } from '../../support/checks.js';

/**
 * How likely it is that one of `k` samples passes, where `passed` of `samples` did: the unbiased estimate, 1 − C(n − c, k) / C(n, k).
 */
export function passAtK(samples: number, passed: number, k: number): number {
  checkIntegers({ k }, 1);
  if (k > samples) throw new RangeError(`k must be <= samples (${samples}), got ${k}`);
  if (!(passed >= 0 && passed <= samples)) throw new RangeError(`passed must be from 0 to ${samples}, got ${passed}`);
  if (samples - passed < k) return 1;
  let missed = 1;
  for (let place = samples - passed + 1; place <= samples; place++) missed *= 1 - k / place;
  return 1 - missed;
}
