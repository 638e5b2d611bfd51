import type { UntypedFuture } from '../../wire/futures.js';
import type { ModelInput } from '../../wire/modelInput.js';
import type { SampledSequence, SampleResponse } from '../../wire/sampling.js';
import { APIResponseValidationError } from '../errors.js';
import type { SampleOptions } from './sampleRequest.js';

/** Names each sequence by the id that the service gave at submission, where it gives any. */
export function attachSequenceIds(
  response: SampleResponse,
  { requestId, sampleSequenceIds }: UntypedFuture,
): SampleResponse {
  if (sampleSequenceIds === undefined) return response;
  if (sampleSequenceIds.length !== response.sequences.length) {
    throw new APIResponseValidationError(
      `${sampleSequenceIds.length} sequence ids for ${response.sequences.length} sequences`,
      { requestId },
    );
  }
  // Into the response itself, which was decoded just now and which nobody else has seen.
  response.sequences.forEach((sequence: { sequenceId?: string }, index) => {
    sequence.sequenceId = sampleSequenceIds[index]!;
  });
  return response;
}

/** Some servers leave out the first prompt token, which has no logprob; here every token has its place. */
export function padPromptLogprobs(response: SampleResponse, prompt: ModelInput): SampleResponse {
  const { promptLogprobs } = response;
  if (promptLogprobs === undefined || !prompt.chunks.every((chunk) => chunk.type === 'encoded_text')) return response;
  if (promptLogprobs.length !== prompt.length - 1) return response;
  const padded = new Float32Array(prompt.length).fill(NaN);
  padded.set(promptLogprobs, 1);
  return { ...response, promptLogprobs: padded };
}

/**
 * An older server ignores what it does not know and samples anyway: fail rather than return data that is
 * not what was asked for.
 */
export function checkHonoured(
  response: SampleResponse,
  asked: { readonly promptAltTokensK?: number; readonly promptLogprobsLastN?: number },
): SampleResponse {
  const { promptAltTokensK = 0, promptLogprobsLastN } = asked;
  if (promptAltTokensK > 0 && response.promptAltTokens === undefined) {
    throw new APIResponseValidationError(
      'the service returned no alternative tokens: it may be too old for promptAltTokensK',
    );
  }
  const { promptLogprobs } = response;
  if (
    promptLogprobsLastN !== undefined &&
    promptLogprobs?.subarray(0, -promptLogprobsLastN).some((logprob) => !Number.isNaN(logprob))
  ) {
    throw new APIResponseValidationError(
      'the service scored the whole prompt: it may be too old for promptLogprobsLastN',
    );
  }
  return response;
}

/** The options that a server left out of its answer although they were asked for; what has no place there is not missed. */
export function ignoredOptions(
  { sequences, topkPromptLogprobs, targetPromptLogprobs }: SampleResponse,
  asked: SampleOptions,
): string[] {
  const ignored: string[] = [];
  const lacksTopk = ({ tokens, topkLogprobs }: SampledSequence): boolean =>
    tokens.length > 0 && topkLogprobs === undefined;
  if ((asked.topkSampleLogprobs ?? 0) > 0 && sequences.some(lacksTopk)) ignored.push('topkSampleLogprobs');
  const promptIsScored = !isOneToken(asked.prompt);
  if ((asked.topkPromptLogprobs ?? 0) > 0 && promptIsScored && topkPromptLogprobs === undefined)
    ignored.push('topkPromptLogprobs');
  if (asked.targetPromptLogprobs !== undefined && promptIsScored && targetPromptLogprobs === undefined)
    ignored.push('targetPromptLogprobs');
  return ignored;
}

/** The first token of a prompt has no score, so this prompt has none at all. */
const isOneToken = ({ chunks }: ModelInput): boolean =>
  chunks.length === 1 && chunks[0]?.type === 'encoded_text' && chunks[0].tokens.length === 1;
