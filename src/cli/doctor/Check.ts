/** What one check found. */
export interface Finding {
  readonly name: string;
  readonly state: 'ok' | 'warning' | 'wrong';
  readonly found: string;
  /** What to do about it. */
  readonly advice?: string;
}

export const ok = (name: string, found: string): Finding => ({ name, state: 'ok', found });
const finding =
  (state: 'warning' | 'wrong') =>
  (name: string, found: string, advice: string): Finding => ({ name, state, found, advice });
export const warning = finding('warning');
export const wrong = finding('wrong');
