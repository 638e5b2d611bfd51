export const HOUR_MS = 3_600_000;

/** Ends a TestScheduler after an hour where nobody has said when: a client's heartbeat never ends by itself. */
export function endSomeTime(scheduler: object): void {
  if ('maxFrames' in scheduler && scheduler.maxFrames === Infinity) scheduler.maxFrames = HOUR_MS;
}
