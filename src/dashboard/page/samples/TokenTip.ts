import type { DashboardSample } from '../../state/changes.js';
import { byId } from '../dom.js';
import { logprob as shown, percent } from '../format.js';
import { sampleIn } from './sampleArticle.js';

/** Says what stands behind a token: on hover, and with the arrow keys in a focused sample. */
export class TokenTip {
  readonly #tip = byId('tip');

  constructor(list: HTMLElement) {
    list.addEventListener('pointerover', (event) => {
      const token = (event.target as Element).closest('i');
      if (token === null) this.#hide();
      else this.#show(token);
    });
    list.addEventListener('pointerleave', () => this.#hide());
    list.addEventListener('focusout', () => {
      for (const token of list.querySelectorAll('i.at')) token.classList.remove('at');
      this.#hide();
    });
    list.addEventListener('keydown', (event) => this.#key(event));
  }

  #key(event: KeyboardEvent): void {
    const text = (event.target as Element).closest('.text');
    if (text === null) return;
    if (event.key === 'Escape') return this.#hide();
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
    event.preventDefault();
    const tokens = [...text.querySelectorAll('i')];
    const before = tokens.findIndex((token) => token.classList.contains('at'));
    const place = Math.min(tokens.length - 1, Math.max(0, before + (event.key === 'ArrowLeft' ? -1 : 1)));
    tokens[before]?.classList.remove('at');
    tokens[place]?.classList.add('at');
    tokens[place]?.scrollIntoView({ block: 'nearest' });
    if (tokens[place] !== undefined) this.#show(tokens[place]);
  }

  #show(token: Element): void {
    const text = token.parentElement!;
    const sample = sampleIn.get(text);
    if (sample === undefined) return;
    const place = [...text.querySelectorAll('i')].indexOf(token as HTMLElement);
    this.#tip.textContent = describe(sample, place);
    this.#tip.hidden = false;
    const { left, bottom, top } = token.getBoundingClientRect();
    const { width, height } = this.#tip.getBoundingClientRect();
    const below = bottom + height + 8 < innerHeight;
    this.#tip.style.left = `${Math.max(4, Math.min(left, innerWidth - width - 8))}px`;
    this.#tip.style.top = `${below ? bottom + 6 : top - height - 6}px`;
  }

  #hide(): void {
    this.#tip.hidden = true;
  }
}

function describe({ pieces, tokens, logprobs }: DashboardSample, place: number): string {
  const token = tokens[place];
  const ids = typeof token === 'number' ? `token ${token}` : `tokens ${token?.join(', ') ?? ''}`;
  const logprob = logprobs?.[place];
  const likely =
    logprob === undefined || logprob === null
      ? 'no logprob'
      : `logprob ${shown(logprob)} · probability ${percent(Math.exp(logprob))}`;
  return `${JSON.stringify(pieces[place])} · ${ids}\n${likely}`;
}
