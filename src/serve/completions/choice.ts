import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import type { Tokenizer } from '../../chat/tokenizer/Tokenizer.js';
import type { SampledSequence, SampleResponse } from '../../wire/sampling.js';
import type { SampledToken } from '../completion/ChatRequest.js';
import { endsTurn, remembering, sampledTokens, TokenCursor } from '../completion/TokenCursor.js';
import { StopText } from '../completion/StopText.js';
import type { TextAsk } from './completionsRequest.js';

/** One continuation as OpenAI writes it, with its prompt where that is asked for. */
export function choiceOf(
  prompt: Int32Array,
  sequence: SampledSequence,
  response: SampleResponse,
  ask: TextAsk,
  renderer: Renderer,
): object {
  const { tokenizer } = renderer;
  const stop = new StopText(ask.stop);
  const { tokens } = sequence;
  const said = endsTurn(renderer, tokens.at(-1)) ? tokens.subarray(0, -1) : tokens;
  const text = stop.push(tokenizer.decode(said)) + (stop.stop === undefined ? stop.finish() : '');
  const finish = stop.stop !== undefined || sequence.stopReason === 'stop' ? 'stop' : 'length';
  const told = (): readonly SampledToken[] => {
    if (stop.stop !== undefined) return upTo(text, sequence, tokenizer);
    // Programs that score a prompt expect a row for every sampled token.
    return sampledTokens(sequence).slice(0, ask.echo ? undefined : said.length);
  };
  const logprobs = (): object | null => {
    if (ask.logprobs === undefined || sequence.logprobs === undefined) return null;
    return legacyLogprobs([...(ask.echo ? promptTokens(prompt, response) : []), ...told()], ask.logprobs, tokenizer);
  };
  return {
    text: ask.echo ? tokenizer.decode(prompt) + text : text,
    logprobs: logprobs(),
    finish_reason: finish,
    ...(ask.tokenIds ? { token_ids: [...tokens], prompt_token_ids: [...prompt] } : {}),
  };
}

function upTo(text: string, sequence: SampledSequence, tokenizer: Tokenizer): readonly SampledToken[] {
  const cursor = new TokenCursor(tokenizer);
  cursor.add(sequence);
  return text === '' ? [] : cursor.take(text);
}

/** The prompt as if it had been sampled; its first token has no log probability. */
const promptTokens = (prompt: Int32Array, { promptLogprobs, topkPromptLogprobs }: SampleResponse): SampledToken[] =>
  sampledTokens({ tokens: prompt, logprobs: promptLogprobs, topkLogprobs: topkPromptLogprobs });

/** The older form: four lists of the same length. */
function legacyLogprobs(tokens: readonly SampledToken[], most: number, tokenizer: Tokenizer): object {
  const wordOf = remembering((token) => tokenizer.decode([token]));
  const words = tokens.map(({ token }) => wordOf(token));
  let offset = 0;
  return {
    tokens: words,
    token_logprobs: tokens.map(({ logprob }) => valueOf(logprob)),
    text_offset: words.map((word) => (offset += word.length) - word.length),
    top_logprobs: most === 0 ? null : tokens.map((token) => topOf(token, wordOf)),
  };
}

const valueOf = (logprob: number): number | null => (Number.isNaN(logprob) ? null : logprob);

/** The most likely tokens, and the token itself: it is one of them, or it is added. */
function topOf({ token, logprob, top }: SampledToken, wordOf: (token: number) => string): object | null {
  if (Number.isNaN(logprob)) return null;
  const listed: Record<string, number> = {};
  for (const [id, value] of top) listed[wordOf(id)] = value;
  listed[wordOf(token)] = logprob;
  return listed;
}
