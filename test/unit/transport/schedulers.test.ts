import { interval, lastValueFrom, take, timer, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { backgroundScheduler } from '../../../src/transport/schedulers.js';

/** Timers that keep the process alive. */
const holding = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

describe('the background scheduler', () => {
  it('keeps no process alive', () => {
    const before = holding();
    const subscription = interval(60_000, backgroundScheduler).subscribe();
    expect(holding()).toBe(before);
    subscription.unsubscribe();
  });

  it('does not keep it alive from the second tick on either', async () => {
    let ticks = 0;
    const before = holding();
    const subscription = timer(1, 2, backgroundScheduler).subscribe(() => ticks++);
    await expect.poll(() => ticks).toBeGreaterThan(1);
    // Another file's timer, in the same process, may have ended meanwhile.
    expect(holding()).toBeLessThanOrEqual(before);
    subscription.unsubscribe();
  });

  it('runs what RxJS schedules on it, in order, and stops when nobody listens', async () => {
    const ticks = lastValueFrom(interval(1, backgroundScheduler).pipe(take(3), toArray()));
    // What waits here must hold the process: the scheduler does not.
    const alive = setInterval(() => undefined, 1000);
    expect(await ticks).toEqual([0, 1, 2]);
    clearInterval(alive);
  });

  it('runs nothing that was unsubscribed', async () => {
    let ran = 0;
    backgroundScheduler.schedule(() => ran++, 1).unsubscribe();
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(ran).toBe(0);
  });
});
