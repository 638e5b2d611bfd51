import { concatMap, defer, from, map, type Observable } from 'rxjs';
import type { Renderer } from '../chat/renderers/core/Renderer.js';
import type { Tokenizer } from '../chat/tokenizer/Tokenizer.js';

/** Loaded on first use: programs that bring their own tokens never load tokenizers and templates. */
const chat = defer(() => from(import('../chat/index.js')));

/** The tokenizer of a model by the service's rules. */
export const tokenizerOf = (model: string, tokenizerId?: string): Observable<Tokenizer> =>
  chat.pipe(concatMap(({ tokenizerForModel }) => tokenizerForModel(model, tokenizerId)));

/** A renderer by name, or the one recommended for the model, over the model's tokenizer. */
export const rendererOf = (model: string, tokenizerId?: string, name?: string): Observable<Renderer> =>
  chat.pipe(
    concatMap(({ getRenderer, rendererFor, tokenizerForModel }) => {
      const chosen = name ?? rendererFor(model);
      return from(tokenizerForModel(model, tokenizerId)).pipe(map((tokenizer) => getRenderer(chosen, tokenizer)));
    }),
  );
