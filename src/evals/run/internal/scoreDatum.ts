import { map, type Observable } from 'rxjs';
import { countedText } from '../../../chat/datum/countedText.js';
import type { Renderer } from '../../../chat/renderers/core/Renderer.js';
import type { SampleOptions } from '../../../client/SamplingClient.js';
import type { Datum } from '../../../wire/datum.js';
import type { SampleResponse } from '../../../wire/sampling.js';
import { namedTensor } from '../../../wire/tensor.js';

export interface DatumScore {
  /** The negative log likelihood of all tokens that carry loss, in nats. */
  readonly nll: number;
  readonly tokens: number;
  /** The same of the tokens that have text, without end marks, and the bytes of that text: what bits per byte are made of. */
  readonly textNll: number;
  readonly bytes: number;
  /** How many of them the model thinks likeliest; NaN if that was not told. */
  readonly correct: number;
  readonly promptTokens: number;
}

interface Scoring {
  readonly renderer: Renderer;
  readonly accuracy: boolean;
  readonly sample: (options: SampleOptions) => Observable<SampleResponse>;
}

/** Has the service score what a datum would train. A token of weight 0 does not count; any other weight counts as 1. */
export function scoreDatum(
  { modelInput, lossFnInputs }: Datum,
  { renderer, accuracy, sample }: Scoring,
): Observable<DatumScore> {
  const targets = namedTensor('target_tokens', lossFnInputs['target_tokens']!).data;
  const weights = namedTensor('weights', lossFnInputs['weights']!).data;
  const prompt = modelInput.appendInt(Number(targets[targets.length - 1]!));
  const asked = sample({
    prompt,
    samplingParams: { maxTokens: 1 },
    includePromptLogprobs: true,
    ...(accuracy ? { topkPromptLogprobs: 1 } : {}),
  });
  const counted: number[] = [];
  for (let place = 0; place < targets.length; place++) if (Number(weights[place]) !== 0) counted.push(place);
  const text = countedText(Array.from(targets, Number), Array.from(weights, Number), renderer.tokenizer);
  return asked.pipe(
    map(({ promptLogprobs, topkPromptLogprobs: top }) => {
      if (promptLogprobs === undefined) throw new Error('the service returned no prompt logprobs');
      let nll = 0;
      let correct = top === undefined ? NaN : 0;
      for (const place of counted) {
        // Position i predicts token i + 1, whose logprob stands at i + 1.
        nll -= promptLogprobs[place + 1]!;
        if (top !== undefined && top.tokenIds[(place + 1) * top.k] === Number(targets[place])) correct++;
      }
      if (!Number.isFinite(nll)) throw new Error('the service returned a logprob that is not a finite number');
      const textNll = text.places.reduce((sum, place) => sum - promptLogprobs[place + 1]!, 0);
      return { nll, tokens: counted.length, textNll, bytes: text.bytes, correct, promptTokens: prompt.length };
    }),
  );
}
