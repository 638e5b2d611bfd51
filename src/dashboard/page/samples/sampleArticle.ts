import type { DashboardSample } from '../../state/changes.js';
import { make } from '../dom.js';
import { clock, logprob, number, shortName, whole } from '../format.js';
import { meanLogprob } from './selectSamples.js';

const FIRST_PIECES = 400;
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f]/g;
const LIMITS = [0.02, 0.1, 0.3, 0.6];

/** The samples by the elements that show their texts. */
export const sampleIn = new WeakMap<Element, DashboardSample>();

/** One sample: facts, the prompt, and its tokens coloured by how likely they were. `text` is marked where it occurs. */
export function sampleArticle(sample: DashboardSample, text: string, key: string): HTMLElement {
  const { id, atMs, run, prompt, pieces, logprobs, length, stopReason, reward } = sample;
  const mean = meanLogprob(sample);
  const facts = [
    `sample ${whole(id + 1)}`,
    clock(atMs),
    ...(run === undefined ? [] : [shortName(run)]),
    ...(reward === undefined ? [] : [`reward ${number(reward)}`]),
    `${whole(length)} tokens`,
    ...(stopReason === undefined ? [] : [`stop: ${stopReason}`]),
    ...(Number.isNaN(mean) ? [] : [`mean logprob ${logprob(mean)}`]),
  ];
  const body = make('p', {
    class: 'text',
    tabindex: '0',
    'aria-label': `Sample ${whole(id + 1)}; arrow keys read its tokens`,
  });
  sampleIn.set(body, sample);
  body.append(make('span', { class: 'prompt' }, ...marked(prompt, text)));
  const hits = hitPieces(pieces, text);
  const append = (from: number, to: number) => {
    for (let piece = from; piece < Math.min(to, pieces.length); piece++) {
      body.append(
        make(
          'i',
          { class: `${likelihood(logprobs?.[piece])}${hits.has(piece) ? ' hit' : ''}` },
          visible(pieces[piece]!),
        ),
      );
    }
  };
  append(0, FIRST_PIECES);
  const article = make(
    'article',
    { 'data-key': key },
    make('header', {}, ...facts.map((fact) => make('span', {}, fact))),
    body,
  );
  if (pieces.length > FIRST_PIECES) {
    const more = make('button', { type: 'button' }, `Show ${whole(pieces.length - FIRST_PIECES)} more tokens`);
    more.addEventListener('click', () => {
      append(FIRST_PIECES, pieces.length);
      more.remove();
    });
    article.append(more);
  }
  const shown = sample.tokens.reduce<number>((sum, token) => sum + (typeof token === 'number' ? 1 : token.length), 0);
  if (length > shown) {
    article.append(make('span', { class: 'status' }, ` The first ${whole(shown)} of ${whole(length)} tokens.`));
  }
  return article;
}

/** Line ends and other control characters are invisible; a colour needs something to show on. */
const visible = (piece: string): string =>
  piece === ''
    ? '∅'
    : piece
        .replace(CONTROLS, (control) => `\\x${control.charCodeAt(0).toString(16).padStart(2, '0')}`)
        .replaceAll('\n', '↵\n');

/** The class of a piece, by its probability. */
function likelihood(logprob: number | null | undefined): string {
  if (logprob === undefined || logprob === null) return 'p4';
  const place = LIMITS.findIndex((limit) => Math.exp(logprob) < limit);
  return `p${place < 0 ? 4 : place}`;
}

/** Which pieces have a part in an occurrence of the text. */
function hitPieces(pieces: readonly string[], text: string): Set<number> {
  const hits = new Set<number>();
  if (text === '') return hits;
  const all = pieces.join('').toLowerCase();
  let [piece, start] = [0, 0];
  for (let at = all.indexOf(text); at >= 0; at = all.indexOf(text, at + text.length)) {
    while (start + pieces[piece]!.length <= at) start += pieces[piece++]!.length;
    for (let [next, from] = [piece, start]; next < pieces.length && from < at + text.length; next++) {
      hits.add(next);
      from += pieces[next]!.length;
    }
  }
  return hits;
}

function marked(prompt: string, text: string): (string | Node)[] {
  if (text === '') return [prompt];
  const parts: (string | Node)[] = [];
  let from = 0;
  for (let at = prompt.toLowerCase().indexOf(text); at >= 0; at = prompt.toLowerCase().indexOf(text, from)) {
    parts.push(prompt.slice(from, at), make('mark', {}, prompt.slice(at, at + text.length)));
    from = at + text.length;
  }
  return [...parts, prompt.slice(from)];
}
