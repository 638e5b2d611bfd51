const SLICE_MS = 8;
let since = 0;

/** Lets messages and other work of this thread run, unless that happened within the last few milliseconds. */
export async function breathe(): Promise<void> {
  if (performance.now() - since < SLICE_MS) return;
  await new Promise<void>((resolve) => setImmediate(resolve));
  since = performance.now();
}
