const SLICE_MS = 8;
let since = 0;

/** Lets messages and other work of this thread run, unless that happened within the last few milliseconds. */
export async function breathe(): Promise<void> {
  if (performance.now() - since < SLICE_MS) return;
  await new Promise<void>((resolve) => setImmediate(resolve));
  since = performance.now();
}

/** Work that pauses where other work may run. */
export type Steps<A> = Generator<void, A, void>;

/** Does all of it at once. */
export function finish<A>(steps: Steps<A>): A {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Lets other work in at the pauses. */
export async function runYielding<A>(steps: Steps<A>): Promise<A> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await breathe();
  }
}
