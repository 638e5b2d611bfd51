import { BehaviorSubject, distinctUntilChanged, fromEvent, merge, type Observable, startWith, tap } from 'rxjs';
import { byId } from './dom.js';

const STORED = 'tinker-rx-theme';

/** Sets light or dark, as chosen or as the system has it, and says which it is. */
export function theme(): Observable<'light' | 'dark'> {
  const select = byId<HTMLSelectElement>('theme');
  const system = matchMedia('(prefers-color-scheme: dark)');
  select.value = stored();
  const theme$ = new BehaviorSubject<'light' | 'dark'>('light');
  merge(fromEvent(select, 'change').pipe(tap(() => store(select.value))), fromEvent(system, 'change'))
    .pipe(startWith(undefined))
    .subscribe(() => {
      const shown = select.value === 'auto' ? (system.matches ? 'dark' : 'light') : (select.value as 'light' | 'dark');
      document.documentElement.dataset['theme'] = shown;
      theme$.next(shown);
    });
  return theme$.pipe(distinctUntilChanged());
}

/** Storage may be shut off: then the choice lasts as long as the page. */
function stored(): string {
  try {
    return localStorage.getItem(STORED) ?? 'auto';
  } catch {
    return 'auto';
  }
}

function store(value: string): void {
  try {
    localStorage.setItem(STORED, value);
  } catch {
    // As above.
  }
}

/** A colour of the style sheet as it is now. */
export const colour = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
