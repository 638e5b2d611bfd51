import { readdirSync } from 'node:fs';
import { asapScheduler, concatMap, delay, interval, map, of, repeat, take, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ModelInput, ServiceClient } from 'tinker-rx';
import * as testing from 'tinker-rx/testing';
import { VirtualClock, dropped, fakeTransport, json, refusal } from 'tinker-rx/testing';
import { marbles } from '../marbles.js';
import { datum } from './stage.js';

describe('VirtualClock', () => {
  it('runs what is due in order, by time and then by call, and stands where it was sent', () => {
    const clock = new VirtualClock();
    const seen: string[] = [];
    for (const [name, delayMs] of [
      ['c', 20],
      ['a', 10],
      ['b', 10],
      ['d', 21],
      ['now', 0],
    ] as const)
      timer(delayMs, clock).subscribe(() => seen.push(`${name}@${clock.now()}`));
    clock.advanceTo(20);
    expect(seen).toEqual(['now@0', 'a@10', 'b@10', 'c@20']);
    clock.advanceBy(0.5);
    expect(clock.now()).toBe(20.5);
    clock.advanceBy(100);
    expect(seen.at(-1)).toBe('d@21');
  });

  it('runs what is set off on the way, and nothing that was called off', () => {
    const clock = new VirtualClock();
    const seen: number[] = [];
    interval(100, clock)
      .pipe(take(5))
      .subscribe(() => seen.push(clock.now()));
    of(1)
      .pipe(delay(150, clock), repeat(2))
      .subscribe(() => seen.push(-clock.now()));
    const off = timer(50, clock).subscribe(() => seen.push(NaN));
    off.unsubscribe();
    clock.advanceTo(1000);
    expect(seen).toEqual([100, -150, 200, -300, 300, 400, 500].sort((a, b) => Math.abs(a) - Math.abs(b)));
  });

  it('keeps many timers in order', () => {
    const clock = new VirtualClock();
    const seen: number[] = [];
    for (let index = 0; index < 5000; index++)
      timer((index * 7919) % 5003, clock).subscribe(() => seen.push(clock.now()));
    clock.advanceTo(6000);
    expect(seen).toHaveLength(5000);
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
  });

  it('does not go back', () => {
    const clock = new VirtualClock();
    clock.advanceTo(10);
    expect(() => clock.advanceTo(9)).toThrow(new RangeError('the clock stands at 10 ms, past 9 ms'));
    expect(() => clock.advanceTo(NaN)).toThrow(RangeError);
  });

  it('resolves what will settle, at the moment it does', () => {
    const clock = new VirtualClock();
    timer(5, clock).pipe(repeat()).subscribe();
    expect(clock.resolve(timer(42, clock).pipe(map(() => 'done')))).toBe('done');
    expect(clock.now()).toBe(42);
    const failing = timer(8, clock).pipe(concatMap(() => throwError(() => new Error('no'))));
    expect(() => clock.resolve(failing)).toThrow('no');
    expect(clock.reject(failing)).toEqual(new Error('no'));
  });

  it('says so when it cannot', () => {
    const clock = new VirtualClock();
    expect(() => clock.resolve(of(1).pipe(delay(1, asapScheduler)))).toThrow(
      'at 0 ms the future has not settled, and nothing will settle it',
    );
    expect(() => clock.resolve(of(1).pipe(take(0)))).toThrow('the future completed without a result');
    expect(() => clock.reject(of(1))).toThrow('the future was to fail, and did not');
  });
});

describe('fakeTransport', () => {
  // prettier-ignore
  it('answers as a marble diagram says', marbles((m) => {
    m.scheduler.maxFrames = 60_000;
    const fake = fakeTransport({
      scheduler: m.scheduler,
      script: { optim_step: [m.cold('3s a|', { a: refusal(503) }), m.cold('500ms #', {}, dropped())] },
    });
    const expected = 's 3999ms s 2499ms s';       // three seconds and one of waiting, half a second and two
    const service = new ServiceClient(fake.clientOptions);
    service.createLoraTrainingClient({ baseModel: 'any' }).subscribe((trainer) => void trainer.optimStep());
    m.expect(fake.requests$.pipe(concatMap(({ path }) => (path === 'optim_step' ? ['s'] : [])))).toBeObservable(expected);
  }));

  it('is a service at which a whole run goes well', () => {
    const clock = new VirtualClock();
    const fake = fakeTransport({
      scheduler: clock,
      latencyMs: 20,
      workMs: ({ path }) => (path === 'asample' ? 500 : 10_000),
    });
    const service = new ServiceClient(fake.clientOptions);
    const trainer = clock.resolve(service.createLoraTrainingClient({ baseModel: 'any' }));
    const pass = trainer.forwardBackward([datum(4)], 'cross_entropy');
    const step = trainer.optimStep();
    const sampler = clock.resolve(trainer.saveWeightsAndGetSamplingClient());
    expect(clock.resolve(pass).metrics).toEqual({ 'loss:sum': 4 });
    expect(clock.resolve(step)).toEqual({ metrics: {} });
    const startMs = clock.now();
    const { sequences } = clock.resolve(
      sampler.sample({ prompt: ModelInput.fromInts([1]), numSamples: 2, samplingParams: { maxTokens: 3 } }),
    );
    expect(sequences.map(({ tokens }) => [...tokens])).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
    expect(clock.now() - startMs).toBe(520);
    expect(clock.resolve(trainer.saveState('a')).path).toBe('tinker://session-1:train:0/weights/a');
    expect(clock.resolve(trainer.getInfo()).modelId).toBe('session-1:train:0');
    clock.resolve(service.close());
    expect(fake.requests.every(({ state }) => state === 'answered')).toBe(true);
  });

  it('goes through a list of replies, then answers by itself; a function may leave the answer to it', () => {
    const clock = new VirtualClock();
    const fake = fakeTransport({
      scheduler: clock,
      script: {
        optim_step: [refusal(429), ({ atMs }) => (atMs === 1000 ? refusal(500) : undefined)],
        get_server_capabilities: json({ supported_models: [] }),
      },
    });
    const service = new ServiceClient(fake.clientOptions);
    clock.resolve(clock.resolve(service.createLoraTrainingClient({ baseModel: 'any' })).optimStep());
    expect(fake.to('optim_step').map(({ atMs }) => atMs)).toEqual([0, 1000, 3000]);
    for (let time = 0; time < 2; time++)
      expect(clock.resolve(service.getServerCapabilities())).toEqual({ supportedModels: [] });
  });

  it('has results of one’s own', () => {
    const clock = new VirtualClock();
    const fake = fakeTransport({
      scheduler: clock,
      optimStep: ({ seq_id: seqId }) => ({ step: Number(seqId) }),
      forwardBackward: ({ data }) => ({ lossFnOutputType: 'x', lossFnOutputs: [], metrics: { datums: data.length } }),
    });
    const trainer = clock.resolve(new ServiceClient(fake.clientOptions).createLoraTrainingClient({ baseModel: 'any' }));
    expect(clock.resolve(trainer.forwardBackward([datum(), datum()], 'ppo')).metrics).toEqual({ datums: 2 });
    expect(clock.resolve(trainer.optimStep())).toEqual({ metrics: { step: 2 } });
  });
});

describe('the barrel', () => {
  it('has every public name of the folder', async () => {
    const internal = new Set(['index', 'FakePromises', 'FakeTurns', 'fakeEndpoints']);
    const folder = new URL('../../../src/testing/', import.meta.url);
    for (const file of readdirSync(folder).filter((name) => name.endsWith('.ts'))) {
      const name = file.replace('.ts', '');
      if (internal.has(name)) continue;
      const module = (await import(new URL(file, folder).href)) as object;
      for (const exported of Object.keys(module).filter((key) => key !== 'toObservable'))
        expect(Object.keys(testing), `${exported} of ${file}`).toContain(exported);
    }
  });
});
