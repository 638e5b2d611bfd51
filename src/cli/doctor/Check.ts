/** What one check found. */
export interface Finding {
  readonly name: string;
  readonly state: 'ok' | 'warning' | 'wrong';
  readonly found: string;
  /** What to do about it. */
  readonly advice?: string;
}

export const ok = (name: string, found: string): Finding => ({ name, state: 'ok', found });
export const warning = (name: string, found: string, advice: string): Finding => ({
  name,
  state: 'warning',
  found,
  advice,
});
export const wrong = (name: string, found: string, advice: string): Finding => ({
  name,
  state: 'wrong',
  found,
  advice,
});
