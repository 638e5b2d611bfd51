type Options = Readonly<Record<string, number>>;

function refuse(options: Options, fits: (value: number) => boolean, wanted: string): void {
  for (const [name, value] of Object.entries(options)) {
    if (!fits(value)) throw new RangeError(`${name} must be ${wanted}, got ${value}`);
  }
}

/** @throws RangeError with name and value, unless each is an integer of at least `least`; without `least`, any integer. */
export function checkIntegers(options: Options, least = -Infinity): void {
  const wanted = least === -Infinity ? 'an integer' : `an integer >= ${least}`;
  refuse(options, (value) => Number.isSafeInteger(value) && value >= least, wanted);
}

/** @throws RangeError with name and value, unless each is a number of at least `least`; NaN is none. */
export function checkAtLeast(options: Options, least: number): void {
  refuse(options, (value) => value >= least, `>= ${least}`);
}

/** @throws RangeError with name and value, unless each is a number above 0. */
export function checkPositive(options: Options): void {
  refuse(options, (value) => value > 0, '> 0');
}

/** @throws RangeError with name and value, unless each is a finite number. */
export function checkFinite(options: Options): void {
  refuse(options, Number.isFinite, 'a finite number');
}

/** @throws TypeError unless it is a renderer, known by a method. A future of one is what `getRenderer()` gives without `await`. */
export function checkRenderer(name: string, renderer: unknown, method = 'buildSupervisedExamples'): void {
  const members = (renderer ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof members[method] === 'function') return;
  const got = typeof members['then'] === 'function' ? 'a future: write await before getRenderer()' : kindOf(renderer);
  throw new TypeError(`${name} needs a renderer, got ${got}`);
}

/** What a value is, for a message: `a string`, `a list`, `undefined`. */
export const kindOf = (value: unknown): string => {
  if (value === undefined || value === null) return String(value);
  return Array.isArray(value) ? 'a list' : typeof value === 'object' ? 'an object' : `a ${typeof value}`;
};
