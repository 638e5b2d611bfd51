import { describe, expect, it } from 'vitest';
import { describeEvent, logTo } from 'tinker-rx';
import { datum, prompt, stage } from './stage.js';

const MINUTE_MS = 60_000;

describe('progress', () => {
  it('is told once a minute while there is work: how many calls wait, run and have ended', () => {
    const on = stage(
      {
        workMs: ({ path }) => (path === 'forward_backward' ? 150_000 : path === 'asample' ? 90_000 : 0),
        latencyMs: ({ path }) => (path === 'optim_step' ? 100_000 : 0),
      },
      { timeoutMs: 200_000 },
    );
    const model = on.trainer();
    const sampler = on.sampler();
    const lines: string[] = [];
    logTo(on.service.events$, 'info', (line) => lines.push(`${on.clock.now() / 1000} s ${line}`));
    model.forwardBackward([datum()], 'cross_entropy').subscribe();
    model.optimStep().subscribe();
    model.optimStep().subscribe();
    for (let sample = 0; sample < 5; sample++) sampler.sample({ prompt: prompt() }).subscribe();
    on.clock.advanceTo(10 * MINUTE_MS);
    expect(lines.filter((line) => line.includes('waiting'))).toEqual([
      '60 s tinker-rx info: 2 waiting, 6 running, 0 finished in the last minute',
      '120 s tinker-rx info: 1 waiting, 1 running, 6 finished in the last minute',
      '180 s tinker-rx info: 1 waiting, 0 running, 1 finished in the last minute',
    ]);
  });

  it('begins anew with the next work', () => {
    const on = stage({ workMs: ({ path }) => (path === 'optim_step' ? 70_000 : 0) });
    const model = on.trainer();
    on.clock.resolve(model.optimStep());
    on.clock.advanceTo(300_000);
    const second = model.optimStep();
    on.clock.resolve(second);
    expect(on.eventsOf('work-progress').map(({ atMs, running, ended }) => [atMs, running, ended])).toEqual([
      [60_000, 1, 0],
      [360_000, 1, 0],
    ]);
  });

  it('is a warning once nothing has finished for five minutes, so that a program that waits does not look as if it hung', () => {
    const on = stage({ workMs: ({ path }) => (path === 'optim_step' ? 400_000 : 0) });
    const model = on.trainer();
    const lines: string[] = [];
    logTo(on.service.events$, undefined, (line) => lines.push(`${on.clock.now() / 1000} s ${line}`));
    on.clock.resolve(model.optimStep());
    expect(lines).toEqual([
      '300 s tinker-rx warning: nothing has finished for 5 minutes: 0 waiting, 1 running',
      '360 s tinker-rx warning: nothing has finished for 6 minutes: 0 waiting, 1 running',
    ]);
  });

  it('is not told of calls that only ask, of short work, or after the end', () => {
    const on = stage({ latencyMs: ({ path }) => (path === 'get_server_capabilities' ? 50_000 : 0) });
    const model = on.trainer();
    on.clock.resolve(model.optimStep());
    on.clock.resolve(on.service.getServerCapabilities());
    on.clock.resolve(on.service.getServerCapabilities());
    on.clock.resolve(on.service.close());
    on.clock.advanceBy(300_000);
    expect(on.eventsOf('work-progress')).toEqual([]);
    expect(describeEvent({ type: 'work-progress', waiting: 1, running: 2, ended: 3, quietMs: 4, atMs: 5 })).toEqual({
      level: 'info',
      text: '1 waiting, 2 running, 3 finished in the last minute',
    });
  });
});
