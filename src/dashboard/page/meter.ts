import { make } from './dom.js';

/** A bar that shows a share, from 0 to 1. The number stands beside it, so it is not read out. */
export function meter(share: number): HTMLElement {
  const percent = Math.round(share * 100);
  const level = share > 0.9 ? 'full' : 'some';
  return make('progress', { class: `meter ${level}`, max: '100', value: String(percent), 'aria-hidden': 'true' });
}
