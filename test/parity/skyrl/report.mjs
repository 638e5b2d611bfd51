// One line a check, with the seconds since the start; no wait without an end.

const LONGEST_WAIT_MS = 180_000;
const started = Date.now();
let failed = 0;

export const failures = () => failed;

export const say = (line) => console.log(`${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s  ${line}`);

/** What was expected, whether it was so, and what was seen. */
export function check(what, holds, seen = '') {
  if (!holds) failed++;
  say(`${holds ? 'ok    ' : 'FAILED'} ${what}${seen === '' ? '' : `: ${seen}`}`);
}

/** What the server does its own way, for the record. */
export const note = (what) => say(`note   ${what}`);

/** The result of a future, or an error when it takes too long. */
export async function within(what, future, longestMs = LONGEST_WAIT_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing after ${longestMs / 1000} s`)), longestMs);
  });
  try {
    return await Promise.race([future, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The error of a call that must fail. */
export async function failureOf(what, call) {
  try {
    const value = await within(what, call());
    return new Error(`succeeded with ${JSON.stringify(value)}`);
  } catch (error) {
    return error;
  }
}
