/** Distributions of classical tests. Compared with recordings of scipy in test/parity. */

/** ln Γ(x) for x > 0, by Lanczos. */
function lnGamma(x: number): number {
  const G = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
  ];
  let sum = G[0]!;
  for (let term = 1; term < G.length; term++) sum += G[term]! / (x - 1 + term);
  const t = x + 6.5;
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

/** The regularized incomplete beta function, by its continued fraction. */
function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const front = Math.exp(lnGamma(a + b) - lnGamma(a) - lnGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) / a;
  const TINY = 1e-300;
  const guard = (value: number) => (Math.abs(value) < TINY ? TINY : value);
  let c = 1;
  let d = 1 / guard(1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m < 10_000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guard(1 + even * d);
    c = guard(1 + even / c);
    fraction *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guard(1 + odd * d);
    c = guard(1 + odd / c);
    fraction *= d * c;
    if (Math.abs(d * c - 1) < 1e-16) break;
  }
  return front * fraction;
}

/** Two-sided tail probability of Student's t with the given degrees of freedom. */
export function studentTwoSided(t: number, freedom: number): number {
  return incompleteBeta(freedom / (freedom + t * t), freedom / 2, 0.5);
}

/** The t that is exceeded, on either side, with the probability 1 − confidence. The last one is kept: several intervals share it. */
export function studentCritical(confidence: number, freedom: number): number {
  if (kept?.confidence === confidence && kept.freedom === freedom) return kept.t;
  const t = falling((at) => studentTwoSided(at, freedom), 1 - confidence);
  kept = { confidence, freedom, t };
  return t;
}
let kept: { readonly confidence: number; readonly freedom: number; readonly t: number } | undefined;

/** The same of the normal distribution. */
export const normalCritical = (confidence: number): number => falling(normalTwoSided, 1 - confidence);

/** Marsaglia's series around 0; exact to the last digits where it is used, below 7. */
function normalTwoSided(z: number): number {
  let term = z;
  let sum = z;
  for (let power = 3; Math.abs(term) > 1e-18; power += 2) sum += term *= (z * z) / power;
  return 1 - (2 * sum * Math.exp(-0.5 * z * z)) / Math.sqrt(2 * Math.PI);
}

/** Where a falling function takes a value, by halving. */
function falling(probability: (at: number) => number, value: number): number {
  let high = 1;
  while (probability(high) > value && high < 1e9) high *= 2;
  let low = high / 2 > 1 ? high / 2 : 0;
  // Until there is no number between the two.
  for (let halving = 0; halving < 60; halving++) {
    const middle = (low + high) / 2;
    if (probability(middle) > value) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** Two-sided exact binomial test with p = 0.5: the sign test. */
export function fairCoinTwoSided(heads: number, throws: number): number {
  if (throws === 0) return 1;
  const few = Math.min(heads, throws - heads);
  if (2 * few === throws) return 1;
  // P(X ≤ few) as a beta integral, which does not add up thousands of terms.
  return Math.min(1, 2 * incompleteBeta(0.5, throws - few, few + 1));
}

/** Between what the share lies of which `successes` of `trials` are a sample: Clopper and Pearson's exact interval. */
export function binomialInterval(
  successes: number,
  trials: number,
  confidence: number,
): { readonly low: number; readonly high: number } {
  const tail = (1 - confidence) / 2;
  const failures = trials - successes;
  return {
    low: successes === 0 ? 0 : betaQuantile(tail, successes, failures + 1),
    high: failures === 0 ? 1 : betaQuantile(1 - tail, successes + 1, failures),
  };
}

/** Where the beta distribution reaches a probability, by halving. */
function betaQuantile(probability: number, a: number, b: number): number {
  let [low, high] = [0, 1];
  for (let halving = 0; halving < 60; halving++) {
    const middle = (low + high) / 2;
    if (incompleteBeta(middle, a, b) < probability) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}
