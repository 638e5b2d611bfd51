// The client's life against a real SkyRL server: node test/parity/skyrl_life.mjs URL
// Prints what happened, one line a check; exits 1 when any check fails. skyrl_server.py starts the server.
import { ModelInput, SamplingClient, ServiceClient } from 'tinker-rx';

const [url] = process.argv.slice(2);
if (url === undefined) throw new Error('usage: node test/parity/skyrl_life.mjs URL');
const API_KEY = 'tml-life';
const RANK = 8;
const STEPS = 30;
const LEARNING_RATE = 1e-2;
const LONGEST_WAIT_MS = 180_000;
const TEXTS = ['the sea is blue today', 'grass is green all year', 'snow is white'];

const tokensOf = (text) => Int32Array.from(Buffer.from(text));
const textOf = (tokens) => Buffer.from(Array.from(tokens).filter((token) => token < 256)).toString();
const datumOf = (text) => {
  const tokens = tokensOf(text);
  return {
    modelInput: ModelInput.fromInts(tokens.subarray(0, -1)),
    lossFnInputs: { target_tokens: tokens.subarray(1), weights: new Float32Array(tokens.length - 1).fill(1) },
  };
};
const DATA = TEXTS.map(datumOf);
const TOKENS = DATA.reduce((sum, datum) => sum + datum.modelInput.length, 0);

let failures = 0;
const started = Date.now();
const say = (line) => console.log(`${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s  ${line}`);
/** One line of the report: what was expected, whether it was so, and the numbers. */
const check = (what, holds, seen = '') => {
  if (!holds) failures++;
  say(`${holds ? 'ok    ' : 'FAILED'} ${what}${seen === '' ? '' : `: ${seen}`}`);
};
/** No wait is without an end. */
const within = async (what, future, longestMs = LONGEST_WAIT_MS) => {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing after ${longestMs / 1000} s`)), longestMs);
  });
  try {
    return await Promise.race([future, late]);
  } finally {
    clearTimeout(timer);
  }
};
/** The error of a call that must fail. */
const failureOf = async (what, call) => {
  try {
    const value = await within(what, call());
    return new Error(`succeeded with ${JSON.stringify(value)}`);
  } catch (error) {
    return error;
  }
};
const sum = (values) => values.reduce((total, value) => total + value, 0);
const rows = (output, name) => output.lossFnOutputs.map((row) => Array.from(row[name].data));
/** SkyRL answers no metrics: the loss is the sum of every token's. */
const lossOf = (output) => sum(rows(output, 'elementwise_loss').flat());
const close = (a, b, tolerance = 1e-3) => Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(a), Math.abs(b));
const fixed = (value) => value.toFixed(4);

async function capabilities(service) {
  const { supportedModels } = await within('capabilities', service.getServerCapabilities());
  const [model] = supportedModels.map(({ modelName }) => modelName);
  check('capabilities name a model, without a session', !!model && service.sessionId === undefined, model);
  return model;
}

async function create(service, baseModel) {
  const trainer = await within('create', service.createLoraTrainingClient({ baseModel, rank: RANK, seed: 1 }));
  const info = await within('get_info', trainer.getInfo());
  check('create, get_info', info.modelData.modelName === baseModel, `${trainer.modelId} ${JSON.stringify(info)}`);
  return trainer;
}

async function train(trainer, events) {
  const passes = [];
  const steps = [];
  for (let step = 0; step < STEPS; step++) {
    passes.push(trainer.forwardBackward(DATA, 'cross_entropy'));
    steps.push(trainer.optimStep({ learningRate: LEARNING_RATE }));
  }
  const losses = [];
  for (const pass of passes) losses.push(lossOf(await within('forward_backward', pass)) / TOKENS);
  const metrics = [];
  for (const step of steps) metrics.push((await within('optim_step', step)).metrics ?? {});
  say(`       losses a token: ${losses.map(fixed).join(' ')}`);
  say(`       last step's metrics: ${JSON.stringify(metrics.at(-1))}`);
  check(
    `${STEPS} pipelined steps lower the loss`,
    losses.at(-1) < 0.1 * losses[0],
    `${fixed(losses[0])} → ${fixed(losses.at(-1))}`,
  );
  const chosen = events.filter(({ type }) => type === 'protocol-chosen');
  check(
    'JSON chosen once',
    chosen.length === 1 && chosen[0].format === 'json',
    chosen.map(({ reason }) => reason).join(),
  );
  const seqIds = events.flatMap((event) =>
    event.type === 'request-sent' && event.target === trainer.modelId ? [event.seqId] : [],
  );
  check(
    'seq ids without a gap',
    seqIds.every((seqId, index) => seqId === index + 1),
    `1 … ${seqIds.at(-1)}`,
  );
}

async function forward(trainer) {
  const output = await within('forward', trainer.forward(DATA, 'cross_entropy'));
  const logprobs = rows(output, 'logprobs');
  const lengths = logprobs.every((row, index) => row.length === DATA[index].modelInput.length);
  check(
    'forward: a logprob for every target, and their sum is the loss',
    lengths && close(-sum(logprobs.flat()), lossOf(output)),
    fixed(lossOf(output)),
  );
  return lossOf(output);
}

/** A loss of one's own: minus the logprobs, the k-th of a datum weighted by `weight(k)`. */
const weighted = (weight) => (data, logprobs) => ({
  loss: -sum(logprobs.flatMap((row) => Array.from(row, (logprob, index) => weight(index) * logprob))),
  gradients: logprobs.map((row) => Float32Array.from(row, (_, index) => -weight(index))),
  metrics: { datums: data.length },
});

/** The gradient's norm, as the server tells it at a step that changes nothing. */
async function gradientNorm(trainer, pass) {
  const step = trainer.optimStep({ learningRate: 0 });
  const output = await within('pass', pass);
  const { metrics } = await within('optim_step', step);
  return { output, norm: metrics['skyrl.ai/grad_norm'] };
}

async function customLoss(trainer) {
  const before = await forward(trainer);
  const plain = await gradientNorm(trainer, trainer.forwardBackward(DATA, 'cross_entropy'));
  const custom = await gradientNorm(
    trainer,
    trainer.forwardBackwardCustom(
      DATA,
      weighted(() => 1),
    ),
  );
  const { metrics } = custom.output;
  check(
    'a custom −Σ logprobs has the loss of cross_entropy',
    close(metrics['loss:sum'], before),
    `${fixed(metrics['loss:sum'])} and ${fixed(before)}`,
  );
  check('… and metrics of its own', metrics.datums === DATA.length, JSON.stringify(metrics));
  check('… and the gradient', close(custom.norm, plain.norm), `norm ${fixed(custom.norm)} and ${fixed(plain.norm)}`);
  const losses = [];
  for (let step = 0; step < 5; step++) {
    const pass = trainer.forwardBackwardCustom(
      DATA,
      weighted((index) => 1 + (index % 3)),
    );
    const update = trainer.optimStep({ learningRate: 1e-3 });
    losses.push((await within('custom loss', pass)).metrics['loss:sum']);
    await within('optim_step', update);
  }
  check(
    'training by a custom loss lowers it',
    losses.every((loss, step) => step === 0 || loss < losses[step - 1]),
    losses.map(fixed).join(' '),
  );
  const thrown = await failureOf('a throwing loss', () =>
    trainer.forwardBackwardCustom(DATA, () => {
      throw new Error('no loss today');
    }),
  );
  check(
    'a loss that throws fails its own call only',
    thrown.name === 'CustomLossError' && (await forward(trainer)) > 0,
    thrown.message,
  );
  // The server divides a datum's loss by the sum of its weights, at least 1e-9: no client can give it another scale.
  for (const scale of [1, 2, -1]) {
    const scaled = trainer.forwardBackwardCustom(
      DATA,
      weighted(() => scale),
    );
    say(`note   gradient norm of ${scale} × the loss: ${(await gradientNorm(trainer, scaled)).norm}`);
  }
}

async function saveAndResume(service, trainer) {
  const { path } = await within('save', trainer.saveState('thirty'));
  check('save', path === `tinker://${trainer.modelId}/weights/thirty`, path);
  const resumed = await within('resume', service.createTrainingClientFromStateWithOptimizer(path));
  const fresh = await within('from state', service.createTrainingClientFromState(path));
  const losses = [await forward(trainer), await forward(resumed), await forward(fresh)];
  check(
    'both ways to resume start with the same loss',
    close(losses[0], losses[1], 1e-5) && close(losses[0], losses[2], 1e-5),
    losses.map(fixed).join(' '),
  );
  const next = [];
  for (const client of [trainer, resumed]) {
    void client.forwardBackward(DATA, 'cross_entropy').subscribe();
    void client.optimStep({ learningRate: LEARNING_RATE }).subscribe();
    next.push(await forward(client));
  }
  check(
    'the resumed optimizer goes on as the first one does',
    close(next[0], next[1], 1e-3) && next[0] < losses[0],
    next.map(fixed).join(' '),
  );
  return { fresh, path };
}

async function sampleAndScore(service, trainer, baseModel) {
  const { path } = await within('save for sampler', trainer.saveWeightsForSampler('sampler'));
  say(`       sampler weights: ${path}`);
  const byPath = await within('sampling client', service.createSamplingClient({ modelPath: path }));
  const prompt = ModelInput.fromInts(tokensOf('the sea is'));
  const rest = TEXTS[0].slice('the sea is'.length);
  const greedy = await within(
    'sample',
    byPath.sample({ prompt, numSamples: 2, samplingParams: { maxTokens: rest.length, temperature: 0 } }),
  );
  const said = greedy.sequences.map(({ tokens }) => textOf(tokens));
  check(
    'sampled by path: what was trained',
    said.length === 2 && said.every((text) => text === rest),
    JSON.stringify(said),
  );
  check(
    '… a logprob for every token, stopped by length',
    greedy.sequences.every((one) => one.logprobs.length === rest.length && one.stopReason === 'length'),
    greedy.sequences[0].stopReason,
  );
  const stopped = await within(
    'stop',
    byPath.sample({ prompt, samplingParams: { maxTokens: 8, temperature: 0, stop: 'bl' } }),
  );
  check(
    'a stop string stops',
    stopped.sequences[0].stopReason === 'stop',
    JSON.stringify(textOf(stopped.sequences[0].tokens)),
  );
  const seeded = () =>
    byPath.sample({ prompt, numSamples: 1, samplingParams: { maxTokens: 8, temperature: 2, seed: 7 } });
  const [one, two] = [await within('seeded', seeded()), await within('seeded', seeded())].map(({ sequences }) =>
    textOf(sequences[0].tokens),
  );
  check('the same seed, the same sample', one === two, JSON.stringify(one));

  const scores = await within('logprobs', byPath.computeLogprobs(ModelInput.fromInts(tokensOf(TEXTS[0]))));
  const output = await within('forward', trainer.forward(DATA, 'cross_entropy'));
  const trained = rows(output, 'logprobs')[0];
  check(
    'logprobs: every prompt token, none for the first',
    scores.length === TEXTS[0].length && Number.isNaN(scores[0]),
    `${scores.length}`,
  );
  check(
    '… the same as the trainer’s',
    trained.every((value, index) => close(value, scores[index + 1], 1e-2)),
    `Σ ${fixed(sum(trained))} and ${fixed(sum(Array.from(scores).slice(1)))}`,
  );

  const direct = await within('save and get client', trainer.saveWeightsAndGetSamplingClient());
  const now = await within(
    'sample',
    direct.sample({ prompt, samplingParams: { maxTokens: rest.length, temperature: 0 } }),
  );
  check(
    'saveWeightsAndGetSamplingClient samples',
    textOf(now.sequences[0].tokens) === rest,
    JSON.stringify(textOf(now.sequences[0].tokens)),
  );
  check('its base model', (await within('get base model', direct.getBaseModel())) === baseModel, baseModel);
  const clone = SamplingClient.fromSamplerHandle(direct.getSamplerHandle(), { apiKey: API_KEY });
  const cloned = await within(
    'handle',
    clone.sample({ prompt, samplingParams: { maxTokens: rest.length, temperature: 0 } }),
  );
  check('a client from a handle samples', textOf(cloned.sequences[0].tokens) === rest);
  const base = await within('base sampler', service.createSamplingClient({ baseModel }));
  const many = await within(
    'many samples',
    Promise.all(
      Array.from({ length: 8 }, (_, seed) => base.sample({ prompt, samplingParams: { maxTokens: 4, seed } })),
    ),
  );
  check(
    'eight samples of the base model at once',
    many.every(({ sequences }) => sequences[0].tokens.length > 0),
    JSON.stringify(many.map(({ sequences }) => textOf(sequences[0].tokens))),
  );
  return byPath;
}

async function listing(service, trainer, path) {
  const { rest } = service;
  const { checkpoints } = await within('checkpoints', rest.listCheckpoints(trainer.modelId));
  check(
    'checkpoints listed',
    checkpoints.some(({ tinkerPath }) => tinkerPath === path),
    JSON.stringify(checkpoints.map(({ tinkerPath }) => tinkerPath)),
  );
  const run = await within('training run', rest.getTrainingRun(trainer.modelId));
  check('training run', run.trainingRunId === trainer.modelId && run.loraRank === RANK, `rank ${run.loraRank}`);
  const { trainingRuns } = await within('training runs', rest.listTrainingRuns());
  check('training runs', trainingRuns.length >= 3, `${trainingRuns.length}`);
  const info = await within('weights info', rest.getWeightsInfoByTinkerPath(path));
  check('weights info', info.isLora && info.loraRank === RANK, JSON.stringify(info));
}

async function refusals(service, trainer, sampler, baseModel, path) {
  const prompt = ModelInput.fromInts(tokensOf('the'));
  const cases = [
    [
      'a rank too high',
      'RequestFailedError',
      /rank/i,
      () => service.createLoraTrainingClient({ baseModel, rank: 999 }),
    ],
    ['no maxTokens', 'BadRequestError', /max_tokens/, () => sampler.sample({ prompt })],
    [
      'an unknown checkpoint',
      'NotFoundError',
      /not found/i,
      () => service.createTrainingClientFromState(path.replace(/\w+$/, 'nowhere')),
    ],
    [
      'a loss it does not have',
      'UnprocessableEntityError',
      /loss_fn/,
      () => trainer.forwardBackward(DATA, 'dro', { lossFnConfig: { beta: 1 } }),
    ],
    [
      'dimuon',
      'UnprocessableEntityError',
      /adam_params/,
      () => trainer.optimStep({ type: 'dimuon', learningRate: 1e-3 }),
    ],
    ['no data', 'ValidationError', /empty/, () => trainer.forwardBackward([], 'cross_entropy')],
    ['a name that is taken', 'ConflictError', /already exists/, () => trainer.saveState('thirty')],
  ];
  for (const [what, name, words, call] of cases) {
    const since = Date.now();
    const error = await failureOf(what, call);
    check(
      `refused: ${what}`,
      error.name === name && words.test(error.message),
      `${error.name}: ${error.message} (${((Date.now() - since) / 1000).toFixed(1)} s)`,
    );
  }
  check('after the refusals it still trains', (await forward(trainer)) > 0);
}

const events = [];
const service = new ServiceClient({ baseUrl: url, apiKey: API_KEY, logLevel: 'warning' });
service.events$.subscribe((event) => events.push(event));
try {
  const baseModel = await capabilities(service);
  const trainer = await create(service, baseModel);
  await train(trainer, events);
  const { fresh, path } = await saveAndResume(service, trainer);
  await customLoss(fresh);
  const sampler = await sampleAndScore(service, trainer, baseModel);
  await listing(service, trainer, path);
  await refusals(service, trainer, sampler, baseModel, path);
} catch (error) {
  failures++;
  say(`FAILED ${error instanceof Error ? error.stack : String(error)}`);
}
const counts = {};
for (const { type } of events) counts[type] = (counts[type] ?? 0) + 1;
say(`       events: ${JSON.stringify(counts)}`);
for (const event of events)
  if (event.type === 'request-retry') say(`       retried ${event.path}: ${event.error.message}`);
try {
  await within('close', failures === 0 ? service.close() : service.destroy(), 60_000);
  say('ok     closed');
} catch (error) {
  failures++;
  say(`FAILED ${error.message}`);
}
say(failures === 0 ? 'every check held' : `${failures} checks failed`);
process.exit(failures === 0 ? 0 : 1);
