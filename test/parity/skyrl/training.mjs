// Create, train, score, save and resume.
import { check, say, within } from './report.mjs';
import { DATA, TOKENS, close, fixed, lossNow, lossOf, rows, sum } from './texts.mjs';

export const RANK = 8;
const STEPS = 30;
const LEARNING_RATE = 1e-2;

export async function create(service) {
  const { supportedModels } = await within('capabilities', service.getServerCapabilities());
  const baseModel = supportedModels[0]?.modelName;
  check('capabilities name a model, without a session', !!baseModel && service.sessionId === undefined, baseModel);
  const trainer = await within('create', service.createLoraTrainingClient({ baseModel, rank: RANK, seed: 1 }));
  const info = await within('get_info', trainer.getInfo());
  check('create, get_info', info.modelData.modelName === baseModel, JSON.stringify(info));
  return { baseModel, trainer };
}

/** Every pass and step is sent before the first result is awaited. */
export async function train(trainer, events) {
  const work = Array.from({ length: STEPS }, () => ({
    pass: trainer.forwardBackward(DATA, 'cross_entropy'),
    step: trainer.optimStep({ learningRate: LEARNING_RATE }),
  }));
  const losses = [];
  let metrics;
  for (const { pass, step } of work) {
    losses.push(lossOf(await within('forward_backward', pass)) / TOKENS);
    ({ metrics } = await within('optim_step', step));
  }
  say(`       losses a token: ${losses.map(fixed).join(' ')}`);
  say(`       the last step's metrics: ${JSON.stringify(metrics)}`);
  const [first, last] = [losses[0], losses.at(-1)];
  check(`${STEPS} pipelined steps lower the loss`, last < 0.1 * first, `${fixed(first)} → ${fixed(last)} a token`);
  const chosen = events.filter(({ type }) => type === 'protocol-chosen');
  check('the protocol is chosen once', chosen.length === 1, chosen.map((one) => `${one.format}, ${one.reason}`).join());
  const seqIds = events.flatMap(({ type, target, seqId }) =>
    type === 'request-sent' && target === trainer.modelId ? [seqId] : [],
  );
  check('no turn is missing', seqIds.join() === seqIds.map((_, index) => index + 1).join(), `1 … ${seqIds.at(-1)}`);
}

export async function score(trainer) {
  const output = await within('forward', trainer.forward(DATA, 'cross_entropy'));
  const logprobs = rows(output, 'logprobs');
  const complete = logprobs.every((row, index) => row.length === DATA[index].modelInput.length);
  const loss = lossOf(output);
  check(
    'a logprob for every target; their sum is the loss',
    complete && close(-sum(logprobs.flat()), loss),
    fixed(loss),
  );
  const clip = { lossFnConfig: { clip_low_threshold: 0.9, clip_high_threshold: 1.1 } };
  for (const [lossFn, options] of [['importance_sampling'], ['ppo', clip]]) {
    const data = DATA.map(({ modelInput, lossFnInputs: { target_tokens } }, index) => ({
      modelInput,
      lossFnInputs: { target_tokens, logprobs: logprobs[index], advantages: logprobs[index].map(() => 0.5) },
    }));
    const seen = lossOf(await within(lossFn, trainer.forward(data, lossFn, options)));
    check(`${lossFn} at a ratio of 1 is −Σ advantages`, close(seen, -0.5 * TOKENS), fixed(seen));
  }
  const many = Array.from({ length: 1100 }, (_, index) => DATA[index % DATA.length]);
  const long = rows(await within('two requests', trainer.forward(many, 'cross_entropy')), 'logprobs');
  const inOrder = long.every((row, index) => row.every((value, at) => close(value, logprobs[index % DATA.length][at])));
  check('1,100 datums in two requests, their outputs in order', long.length === 1100 && inOrder, `${long.length}`);
}

export async function saveAndResume(service, trainer) {
  const { path } = await within('save', trainer.saveState('thirty'));
  check('save', path === `tinker://${trainer.modelId}/weights/thirty`, path);
  const resumed = await within('resume', service.createTrainingClientFromStateWithOptimizer(path));
  const fresh = await within('from state', service.createTrainingClientFromState(path));
  const losses = [await lossNow(trainer), await lossNow(resumed), await lossNow(fresh)];
  const same = losses.every((loss) => close(loss, losses[0], 1e-5));
  check('with the optimizer or without, it starts with the saved loss', same, losses.map(fixed).join(' '));
  const next = [];
  for (const client of [trainer, resumed]) {
    void client.forwardBackward(DATA, 'cross_entropy').subscribe();
    void client.optimStep({ learningRate: LEARNING_RATE }).subscribe();
    next.push(await lossNow(client));
  }
  const goesOn = close(next[0], next[1]) && next[0] < losses[0];
  check('with the optimizer, the next step is the same', goesOn, next.map(fixed).join(' '));
  return { path, resumed, fresh };
}
