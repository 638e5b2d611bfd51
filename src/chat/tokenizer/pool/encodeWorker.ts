import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../../support/messageOf.js';
import { tokenizerFromRecipe } from './fromRecipe.js';
import type { TokenizerRecipe } from './recipe.js';

/** Texts to encode. */
export interface EncodeRequest {
  readonly texts: readonly string[];
}

/** Their tokens, joined, and where each text's end; or why there are none. */
export type EncodeAnswer = { readonly tokens: Int32Array; readonly ends: Int32Array } | { readonly error: string };

// The body of a worker thread of TokenizerPool: makes the tokenizer once, then answers requests in the order they come.
const port = parentPort;
if (port !== null) {
  const loading = tokenizerFromRecipe(workerData as TokenizerRecipe);
  // Every request reports the failure. Until one comes, it must not count as unhandled.
  loading.catch(() => undefined);
  port.on('message', ({ texts }: EncodeRequest) => {
    loading
      .then((tokenizer) => join(texts.map((text) => tokenizer.encode(text))))
      .then(
        (answer) => port.postMessage(answer, [answer.tokens.buffer, answer.ends.buffer]),
        (error: unknown) => port.postMessage({ error: messageOf(error) }),
      );
  });
}

function join(runs: readonly Int32Array[]): { tokens: Int32Array<ArrayBuffer>; ends: Int32Array<ArrayBuffer> } {
  const tokens = new Int32Array(runs.reduce((sum, run) => sum + run.length, 0));
  const ends = new Int32Array(runs.length);
  let at = 0;
  runs.forEach((run, index) => {
    tokens.set(run, at);
    ends[index] = at += run.length;
  });
  return { tokens, ends };
}
