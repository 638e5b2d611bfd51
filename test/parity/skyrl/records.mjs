// What the server lists, and what it refuses.
import { ModelInput } from 'tinker-rx';
import { check, failureOf, note, within } from './report.mjs';
import { DATA, lossNow, tokensOf } from './texts.mjs';
import { RANK } from './training.mjs';

export async function listing(service, trainer, path) {
  const { rest } = service;
  const { checkpoints } = await within('checkpoints', rest.listCheckpoints(trainer.modelId));
  const paths = checkpoints.map(({ tinkerPath }) => tinkerPath);
  check('checkpoints', paths.includes(path), paths.join(' '));
  const run = await within('training run', rest.getTrainingRun(trainer.modelId));
  check('training run', run.trainingRunId === trainer.modelId && run.loraRank === RANK, `rank ${run.loraRank}`);
  const { trainingRuns } = await within('training runs', rest.listTrainingRuns());
  check('training runs', trainingRuns.length === 3, `${trainingRuns.length}`);
  const info = await within('weights info', rest.getWeightsInfoByTinkerPath(path));
  check('weights info', info.isLora && info.loraRank === RANK, JSON.stringify(info));
}

export async function refusals(service, { baseModel, trainer, sampler, path }) {
  const prompt = ModelInput.fromInts(tokensOf('the'));
  const dro = { lossFnConfig: { beta: 1 } };
  const cases = {
    'rank 999': [/^RequestFailedError.*rank/i, () => service.createLoraTrainingClient({ baseModel, rank: 999 })],
    'no maxTokens': [/^BadRequestError.*max_tokens/, () => sampler.sample({ prompt })],
    'an unknown path': [/^NotFoundError.*found/, () => service.createTrainingClientFromState(`${path}-not`)],
    'a loss it has not': [/^Unprocessable.*loss_fn/, () => trainer.forwardBackward(DATA, 'dro', dro)],
    dimuon: [/^Unprocessable.*adam_params/, () => trainer.optimStep({ type: 'dimuon', learningRate: 1e-3 })],
    'no data': [/^ValidationError.*empty/, () => trainer.forwardBackward([], 'cross_entropy')],
  };
  for (const [what, [expected, call]] of Object.entries(cases)) {
    const { name, message } = await failureOf(what, call);
    check(`refused: ${what}`, expected.test(`${name}: ${message}`), `${name}: ${message}`);
  }
  check('after the refusals the model still answers', (await lossNow(trainer)) > 0);
}

/** Comes last: the server's answer is a 409, which is sent again for minutes while the model's next turn waits. */
export async function takenName(trainer, events) {
  await within('save', trainer.saveState('once'));
  const again = trainer.saveState('once');
  setTimeout(() => again.cancel(), 5000);
  const { name, message } = await failureOf('a taken name', () => again);
  const retries = events.filter(({ type, path }) => type === 'request-retry' && path === 'save_weights');
  const sent = retries.length === 0 ? '' : ` after ${retries.length} retries of ${retries[0].error.message}`;
  note(`a name that is taken: ${name} ${message}${sent}`);
}
