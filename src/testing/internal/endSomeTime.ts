export const HOUR_MS = 3_600_000;

/** Ends a TestScheduler after an hour by default: a client's heartbeat never ends. */
export function endSomeTime(scheduler: object): void {
  if ('maxFrames' in scheduler && scheduler.maxFrames === Infinity) scheduler.maxFrames = HOUR_MS;
}
