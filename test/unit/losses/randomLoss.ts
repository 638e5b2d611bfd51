import { defineLoss, type LossInputs, type LossOps, type Tensor, type TracedLoss } from '../../../src/losses/index.js';

type Make = (a: Tensor, b: Tensor, ops: LossOps) => Tensor;

/** Operations that stay small and away from where logarithms end, so that finite differences tell the truth. */
const MAKES: readonly Make[] = [
  (a, b) => a.add(b),
  (a, b) => a.sub(b),
  (a, b) => a.mul(b).mul(0.3).tanh(),
  (a, b) => a.div(b.square().add(1)),
  (a) => a.neg(),
  (a) => a.tanh().exp(),
  (a) => a.tanh().expm1(),
  (a) => a.square().add(1).log(),
  (a) => a.abs().log1p(),
  (a) => a.abs().add(0.5).sqrt(),
  (a) => a.tanh().pow(3),
  (a) => a.sigmoid(),
  (a) => a.logSigmoid(),
  (a) => a.softplus(),
  (a) => a.add(0.3).relu(),
  (a) => a.clamp({ min: -1.5, max: 0.7 }),
  (a, b) => a.maximum(b),
  (a, b) => a.minimum(b),
  (a, b, ops) => ops.where(a.gt(b), a.mul(0.5), b),
  (a, b, ops) => ops.where(a.lt(0).or(b.ge(0.2)).and(a.ne(b)), a, b.mul(2)).tanh(),
  (a) => a.sum().mul(0.2).tanh(),
  (a, b) => a.mean().add(b),
  (a, b) => a.max().sub(b.min()),
  (a, b) => a.tanh().add(b.mul(0)).logSumExp({ dim: 0 }),
  (a, b) => a.tanh().add(b.mul(0)).unsqueeze(0).logSoftmax().mean(),
  (a, b) => a.tanh().add(b.mul(0)).unsqueeze(0).softmax().max(),
  (a) => a.detach().tanh(),
  (a, b, ops) => ops.sub(1, a).add(ops.div(1, b.square().add(1))),
  (a, b, ops) => ops.weightedMean(a, b.square()),
  (a, b, ops) => ops.withGradientOf(a, b).mul(0.5),
];

/** A loss made of these operations as the numbers choose, each applied to what was made before; all of it counts. */
export function randomLoss(choices: readonly number[]): TracedLoss {
  return defineLoss(
    ({ logprobs, weights, advantages }: LossInputs, ops) => {
      const made: Tensor[] = [logprobs, weights, advantages];
      choices.forEach((choice, index) => {
        const pick = (salt: number) => made[Math.floor(choice / salt) % made.length]!;
        // Every third time from the logprobs, so that the derivative is not about nothing.
        const first = index % 3 === 0 ? logprobs : pick(MAKES.length);
        made.push(MAKES[choice % MAKES.length]!(first, pick(MAKES.length * 7), ops));
      });
      return {
        loss: made.map((each) => each.mean()).reduce((sum, each) => sum.add(each)),
        metrics: { last: made.at(-1)!.mean() },
      };
    },
    { name: 'random' },
  );
}

/** Numbers in [0, 1) that depend on the seed alone. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return ((state ^ (state >>> 15)) >>> 0) / 2 ** 32;
  };
}
