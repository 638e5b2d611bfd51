// A loss in closed form, run here between a forward and a backward pass.
import { check, failureOf, note, within } from './report.mjs';
import { DATA, close, fixed, lossNow, sum } from './texts.mjs';

/** Minus the logprobs, the k-th of every datum weighted by `weight(k)`. */
const weighted = (weight) => (data, logprobs) => ({
  loss: -sum(logprobs.flatMap((row) => Array.from(row, (logprob, index) => weight(index) * logprob))),
  gradients: logprobs.map((row) => Float32Array.from(row, (_, index) => -weight(index))),
  metrics: { datums: data.length },
});
const uneven = weighted((index) => 1 + (index % 3));
const throwing = () => {
  throw new Error('no loss today');
};

/** The output of a pass and its gradient's norm, which the server tells at a step that changes nothing. */
async function gradient(trainer, pass) {
  const step = trainer.optimStep({ learningRate: 0 });
  const { metrics } = await within('pass', pass);
  const { metrics: stepMetrics } = await within('optim_step', step);
  return { metrics, norm: stepMetrics['skyrl.ai/grad_norm'] };
}
const scaled = (trainer, scale) => {
  const loss = weighted(() => scale);
  return gradient(trainer, trainer.forwardBackwardCustom(DATA, loss));
};

export async function customLoss(trainer) {
  const before = await lossNow(trainer);
  const plain = await gradient(trainer, trainer.forwardBackward(DATA, 'cross_entropy'));
  const { metrics, norm } = await scaled(trainer, 1);
  const loss = metrics['loss:sum'];
  check('a custom −Σ logprobs has the loss of cross_entropy', close(loss, before), `${fixed(loss)} ${fixed(before)}`);
  check('… and the norm of its gradient', close(norm, plain.norm), `${fixed(norm)} ${fixed(plain.norm)}`);
  check('… and metrics of its own', metrics.datums === DATA.length, JSON.stringify(metrics));
  const losses = [];
  for (let step = 0; step < 5; step++) {
    const pass = trainer.forwardBackwardCustom(DATA, uneven);
    const update = trainer.optimStep({ learningRate: 1e-3 });
    losses.push((await within('custom loss', pass)).metrics['loss:sum']);
    await within('optim_step', update);
  }
  check('training by a custom loss lowers it', losses.at(-1) < losses[0], losses.map(fixed).join(' '));
  const error = await failureOf('a throwing loss', () => trainer.forwardBackwardCustom(DATA, throwing));
  const goesOn = (await lossNow(trainer)) > 0;
  check('a loss that throws fails its own call only', error.name === 'CustomLossError' && goesOn, error.message);
  // Its JAX engine divides a datum's loss by the sum of the weights, or by 1e-9 where that is more.
  for (const scale of [1, 2, -1]) note(`gradient norm of ${scale} × the loss: ${(await scaled(trainer, scale)).norm}`);
}
