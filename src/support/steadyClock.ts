const LONGEST_STEP_MS = 60_000;

/**
 * A clock for durations, made of one that may be set or stand still: it never goes back, and from one look to the next it advances by at
 * most `longestStepMs`. A caller that looks often, as a session does with its heartbeats, measures the time in which this process ran: neither
 * a laptop that slept for hours, nor a clock that was set, nor a program that blocked its event loop uses up the time for retries.
 */
export function steadyClock(now: () => number, longestStepMs = LONGEST_STEP_MS): () => number {
  let lastMs = now();
  let steadyMs = lastMs;
  return () => {
    const nowMs = now();
    steadyMs += Math.min(Math.max(nowMs - lastMs, 0), longestStepMs);
    lastMs = nowMs;
    return steadyMs;
  };
}
