import type { SampleResponse } from '../wire/index.js';
import { close, differs, holds, no, yes, type Probes } from './Probe.js';
import type { Prober } from './Prober.js';

const PROMPT: readonly number[] = [40, 41, 42, 40, 43];
const GREEDY = { max_tokens: 4, temperature: 0 };
const tokensOf = ({ sequences }: SampleResponse): readonly number[] => Array.from(sequences[0]?.tokens ?? []);
const textOf = (sampled: SampleResponse): string => tokensOf(sampled).join(' ');

const greedy = async (prober: Prober): Promise<readonly number[]> =>
  tokensOf(await prober.sample(PROMPT, { ...GREEDY, stop: [] }));

/** A field of the request that asks for one of the response. */
const carries =
  (field: string, value: unknown, found: (sampled: SampleResponse) => unknown) => async (prober: Prober) => {
    const sampled = await prober.sample(PROMPT, { max_tokens: 1 }, { [field]: value });
    return found(sampled) === undefined ? no('ignored without a word') : yes();
  };

/** What may be asked of a sampler. */
export const sampleProbes: Probes = {
  'sampling: several samples with logprobs': async (prober) => {
    const { sequences } = await prober.sample(PROMPT, { max_tokens: 3 }, { num_samples: 2 });
    const complete = sequences.every(({ tokens, logprobs }) => logprobs?.length === tokens.length);
    return holds(
      sequences.length === 2 && complete,
      `${sequences.length} sequences, logprobs ${complete ? '' : 'in'}complete`,
    );
  },
  'sampling: ids of the sequences': async (prober) => {
    const { sample_sequence_ids: ids } = await prober.submitSample(PROMPT, { max_tokens: 1 }, { num_samples: 2 });
    return Array.isArray(ids) && ids.length === 2 ? yes() : no('none: provenance spans cannot name them');
  },
  'sampling: seeds': async (prober) => {
    const params = { max_tokens: 6, temperature: 2, seed: 7 };
    const [one, two] = [textOf(await prober.sample(PROMPT, params)), textOf(await prober.sample(PROMPT, params))];
    return holds(one === two, 'the same seed gave two samples');
  },
  'sampling: stop by token ids': async (prober) => {
    const [, second = 0] = await greedy(prober);
    const sampled = await prober.sample(PROMPT, { ...GREEDY, stop: [second] });
    const { stopReason } = sampled.sequences[0]!;
    return holds(stopReason === 'stop' && tokensOf(sampled).length <= 2, `ended by ${stopReason}`);
  },
  'sampling: stop as one text': async (prober) => {
    await prober.sample(PROMPT, { ...GREEDY, stop: '\n' });
    return yes();
  },
  'sampling: without max_tokens': async (prober) => {
    await prober.sample(PROMPT, { temperature: 0 });
    return yes();
  },
  'sampling: top_k': async (prober) => {
    const best = (await greedy(prober)).join(' ');
    const first = textOf(await prober.sample(PROMPT, { max_tokens: 4, temperature: 5, top_k: 1, stop: [] }));
    return holds(first === best, 'top_k 1 is not the most likely token');
  },
  'sampling: logprobs of the prompt': async (prober) => {
    const { promptLogprobs } = await prober.sample(PROMPT, { max_tokens: 1 }, { prompt_logprobs: true });
    return promptLogprobs === undefined ? no('ignored') : holds(promptLogprobs.length >= PROMPT.length - 1, 'too few');
  },
  'sampling: top-k of the prompt': carries('topk_prompt_logprobs', 3, (sampled) => sampled.topkPromptLogprobs),
  'sampling: top-k of the sample': carries('topk_sample_logprobs', 3, ({ sequences }) => sequences[0]?.topkLogprobs),
  'sampling: alternatives to the prompt': carries('prompt_alt_tokens_k', 2, (sampled) => sampled.promptAltTokens),
  'sampling: logprobs of given tokens': carries(
    'target_prompt_logprobs',
    { data: PROMPT.slice(1), dtype: 'int64', shape: [PROMPT.length - 1, 1] },
    (sampled) => sampled.targetPromptLogprobs,
  ),
  'sampling: logprobs under temperature': async (prober) => {
    const sampled = await prober.sample(PROMPT, { max_tokens: 6, temperature: 50, seed: 3, stop: [] });
    const tokens = tokensOf(sampled);
    const seen = Array.from(sampled.sequences[0]!.logprobs ?? []);
    const whole = await prober.sample([...PROMPT, ...tokens], { max_tokens: 1 }, { prompt_logprobs: true });
    const raw = Array.from(whole.promptLogprobs ?? []).slice(-tokens.length);
    if (seen.length === 0 || raw.length === 0) return { state: 'unknown', note: 'no logprobs to compare' };
    if (seen.every((value, index) => close(value, raw[index]!, 0.02))) return yes('raw: of temperature 1');
    const spread = Math.max(...seen) - Math.min(...seen);
    return spread < 0.6 ? yes('scaled by the temperature') : differs('neither raw nor scaled');
  },
  'sampling: cancelling': async (prober) => {
    const { request_id: id } = await prober.submitSample(PROMPT, { max_tokens: 64, stop: [] });
    const { status } = await prober.send('cancel_future', { request_id: id });
    return status < 300 ? yes() : no(`answers ${status}: abandoned samples run on`);
  },
  'sampling: one poll for a whole sampler': async (prober) => {
    const { request_id: id } = await prober.submitSample(PROMPT, { max_tokens: 1 });
    const target = { type: 'sampling_session', sampling_session_id: prober.samplerId, cloned_sampler_id: 0 };
    for (let cursor = 0, tries = 0; tries < 20; tries++) {
      const found = await prober.ask('retrieve_futures', {
        target,
        prev_cursor: cursor,
        timeout: 5,
        retrieved_request_ids: [],
      });
      if ((found['completions'] as { request_id: string }[]).some(({ request_id }) => request_id === id)) return yes();
      cursor = Number(found['cursor']);
    }
    return differs('the reply does not contain the sample');
  },
  'sampling: clients join a sampler': async (prober) => {
    const { client_counter: counter } = await prober.ask('join_sampling_session', {
      sampling_session_id: prober.samplerId,
      type: 'join_sampling_session',
    });
    return typeof counter === 'number' ? yes() : differs('no client_counter');
  },
};
