import { describe, expect, it } from 'vitest';
import { NEVER } from 'rxjs';
import { RequestFailedError } from 'tinker-rx';
import { dropped, json, refusal, type Reply } from 'tinker-rx/testing';
import { gaps, stage } from './stage.js';

/** The waits between the polls of an optimizer step whose polls are answered so. */
function waits(...replies: Reply[]): {
  readonly gaps: number[];
  readonly error: unknown;
  readonly on: ReturnType<typeof stage>;
} {
  const on = stage({ script: { 'retrieve_future OptimStep': replies } });
  const step = on.trainer().optimStep();
  let error: unknown;
  step.subscribe({ error: (failure: unknown) => (error = failure) });
  on.clock.advanceBy(600_000);
  const polls = on.fake.to('retrieve_future').filter(({ headers }) => headers['x-tinker-request-type'] === 'OptimStep');
  return { gaps: gaps(polls), error, on };
}
const notYet = (body: object = {}): Reply => json({ type: 'try_again', ...body }, { status: 408 });

describe('polling for a result', () => {
  it('backs off 1, 2, 4 … 30 seconds while the connection fails, without a limit', () => {
    expect(waits(...Array<Reply>(8).fill(dropped())).gaps).toEqual([
      1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000,
    ]);
  });

  it('backs off in the same way on 429', () => {
    expect(waits(refusal(429), refusal(429), dropped()).gaps).toEqual([1000, 2000, 4000]);
  });

  it.each([
    ['408', notYet()],
    ['503', refusal(503)],
    ['400', refusal(400)],
    ['try_again', json({ type: 'try_again' })],
  ])('starts the backoff anew after a %s, which proves that the connection works', (_, answer) => {
    const { gaps: between } = waits(dropped(), dropped(), answer, dropped(), dropped());
    expect([...between.slice(0, 2), ...between.slice(3)]).toEqual([1000, 2000, 1000, 2000]);
    expect(between[2]).toBeLessThanOrEqual(100);
  });

  it('asks again at once after a 5xx, twice, and backs off after that', () => {
    expect(waits(...Array<Reply>(8).fill(refusal(500))).gaps).toEqual([0, 0, 1000, 2000, 4000, 8000, 16_000, 30_000]);
  });

  it('starts to count 5xx anew after a 408', () => {
    expect(waits(refusal(500), refusal(500), refusal(500), notYet(), refusal(500)).gaps).toEqual([0, 0, 1000, 100, 0]);
  });

  it('forgives three 400s, which proxies inject', () => {
    const { gaps: between, error } = waits(refusal(400), refusal(400), refusal(400));
    expect(between).toEqual([0, 0, 0]);
    expect(error).toBeUndefined();
  });

  it('takes the fourth 400 for the answer, and says what the service said', () => {
    const { gaps: between, error, on } = waits(...Array<Reply>(4).fill(refusal(400, 'CUDA out of memory')));
    expect(between).toEqual([0, 0, 0]);
    expect(error).toBeInstanceOf(RequestFailedError);
    expect(error).toMatchObject({ requestId: 'session-1:train:0:1', category: 'unknown' });
    expect((error as Error).message).toContain('CUDA out of memory');
    expect(on.eventsOf('request-retry').map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
  });

  it('forgives 400s anew after a 408', () => {
    const bad = refusal(400);
    expect(waits(bad, bad, bad, notYet(), bad, bad, bad).error).toBeUndefined();
  });

  it('fails at once on what trying again cannot help', () => {
    const { gaps: between, error } = waits(refusal(404, 'no such future'));
    expect(between).toEqual([]);
    expect(error).toMatchObject({ code: 'not_found', requestId: 'session-1:train:0:1' });
  });

  it('gives an answer 45 seconds, then asks again', () => {
    const { gaps: between, on } = waits(NEVER, NEVER);
    expect(between).toEqual([46_000, 47_000]);
    const silent = on.fake.to('retrieve_future').filter(({ state }) => state === 'aborted');
    expect(silent.map(({ atMs, endedMs }) => endedMs! - atMs)).toEqual([45_000, 45_000]);
  });

  it('does not ask in a tight loop a server that says "not yet" at once', () => {
    expect(waits(notYet(), notYet(), json({ type: 'try_again' })).gaps).toEqual([100, 100, 100]);
  });

  it('waits as long as a 429 asks for', () => {
    expect(waits(refusal(429, 'slow', { 'retry-after': '7' })).gaps).toEqual([7000]);
  });

  it('is not told by a poll whether to retry: x-should-retry is for sends', () => {
    const header = { 'x-should-retry': 'false' };
    const { gaps: between, error } = waits(json({}, { status: 408, headers: header }), refusal(503, 'down', header));
    expect(error).toBeUndefined();
    expect(between).toEqual([100, 0]);
  });

  it('counts its polls, says what it waits for, and on the first how long the submission took', () => {
    const on = stage({ latencyMs: 250, script: { 'retrieve_future OptimStep': [notYet(), refusal(503)] } });
    on.clock.resolve(on.trainer().optimStep());
    const polls = on.fake.to('retrieve_future').slice(-3);
    expect(polls.map(({ headers }) => headers['x-tinker-request-iteration'])).toEqual(['0', '1', '2']);
    expect(polls.map(({ headers }) => headers['x-tinker-create-promise-roundtrip-time'])).toEqual([
      '0.25',
      undefined,
      undefined,
    ]);
    expect(polls[0]!.json).toEqual({ request_id: 'session-1:train:0:1', allow_metadata_only: true });
    expect(polls[0]!.lane).toBe('polls');
  });
});

it('polls that the service held were nested in each other: a step that waits for hours ends as any other', () => {
  const polls = 10_000;
  const script = { 'retrieve_future OptimStep': Array.from({ length: polls }, () => notYet()) };
  const on = stage({ latencyMs: 5000, script });
  expect(on.clock.resolve(on.trainer().optimStep())).toBeDefined();
  expect(on.fake.to('retrieve_future').length).toBeGreaterThan(polls);
});
