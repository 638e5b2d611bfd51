// Samples and logprobs, from saved weights, from the weights as they are, through a handle, and from the base model.
import { ModelInput, SamplingClient } from 'tinker-rx';
import { check, within } from './report.mjs';
import { DATA, TEXTS, close, fixed, rows, sum, textOf, tokensOf } from './texts.mjs';

const BEGINNING = 'the sea is';
const REST = TEXTS[0].slice(BEGINNING.length);
const prompt = ModelInput.fromInts(tokensOf(BEGINNING));
const greedy = { maxTokens: REST.length, temperature: 0 };
const said = ({ sequences }) => sequences.map(({ tokens }) => textOf(tokens));
const isRest = (texts) => texts.every((text) => text === REST);

async function fromPath(service, trainer) {
  const { path } = await within('save for sampler', trainer.saveWeightsForSampler('sampler'));
  const sampler = await within('sampling client', service.createSamplingClient({ modelPath: path }));
  const two = await within('sample', sampler.sample({ prompt, numSamples: 2, samplingParams: greedy }));
  const texts = said(two);
  check('saved for sampling, sampled by path', texts.length === 2 && isRest(texts), `${path} ${JSON.stringify(texts)}`);
  const whole = two.sequences.every((one) => one.logprobs.length === REST.length && one.stopReason === 'length');
  check('… with a logprob for every token, stopped by length', whole);
  const stopped = await within('stop', sampler.sample({ prompt, samplingParams: { ...greedy, stop: 'bl' } }));
  check('a stop string stops', stopped.sequences[0].stopReason === 'stop', JSON.stringify(said(stopped)));
  const wild = { prompt, samplingParams: { maxTokens: 8, temperature: 2, seed: 7 } };
  const [one, again] = [await within('seeded', sampler.sample(wild)), await within('seeded', sampler.sample(wild))];
  const [tokens, tokensAgain] = [one, again].map(({ sequences }) => Array.from(sequences[0].tokens).join(' '));
  check('the same seed gives the same sample', tokens === tokensAgain, tokens);
  return sampler;
}

async function logprobs(trainer, sampler) {
  const scores = await within('logprobs', sampler.computeLogprobs(ModelInput.fromInts(tokensOf(TEXTS[0]))));
  const complete = scores.length === TEXTS[0].length && Number.isNaN(scores[0]);
  check('logprobs of every prompt token but the first', complete, `${scores.length}`);
  const [trained] = rows(await within('forward', trainer.forward(DATA, 'cross_entropy')), 'logprobs');
  const same = trained.every((value, index) => close(value, scores[index + 1]));
  check('… are those of the trainer', same, `Σ ${fixed(sum(trained))} ${fixed(sum(scores.slice(1)))}`);
}

async function fromWeights(service, trainer, baseModel, apiKey) {
  const sampler = await within('sampling client', trainer.saveWeightsAndGetSamplingClient());
  const now = said(await within('sample', sampler.sample({ prompt, samplingParams: greedy })));
  check('saveWeightsAndGetSamplingClient', isRest(now), JSON.stringify(now));
  check('its base model', (await within('base model', sampler.getBaseModel())) === baseModel, baseModel);
  const clone = SamplingClient.fromSamplerHandle(sampler.getSamplerHandle(), { apiKey });
  check(
    'a client from a handle',
    isRest(said(await within('clone', clone.sample({ prompt, samplingParams: greedy })))),
  );
  const base = await within('base sampler', service.createSamplingClient({ baseModel }));
  const seeds = Array.from({ length: 8 }, (_, seed) => seed);
  const many = await within(
    'eight samples',
    Promise.all(seeds.map((seed) => base.sample({ prompt, samplingParams: { maxTokens: 4, seed } }))),
  );
  const drawn = many.map(({ sequences }) => Array.from(sequences[0].tokens).join(' '));
  check('eight samples of the base model at once', new Set(drawn).size > 1, drawn.join(' | '));
}

export async function sampling(service, trainer, baseModel, apiKey) {
  const sampler = await fromPath(service, trainer);
  await logprobs(trainer, sampler);
  await fromWeights(service, trainer, baseModel, apiKey);
  return sampler;
}
