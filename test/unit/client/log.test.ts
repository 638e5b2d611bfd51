import { Subject } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { RateLimitError, describeEvent, logTo, type LogLevel, type TinkerEvent } from 'tinker-rx';

const error = new RateLimitError('POST /x: 429 slow', { status: 429, headers: {}, body: '' });
const work = { requestType: 'Sample', requestId: 'r', target: 's' } as const;
const EVENTS: readonly TinkerEvent[] = [
  { type: 'session-created', sessionId: 's', atMs: 0 },
  { type: 'session-message', level: 'error', message: 'upgrade now', atMs: 0 },
  { type: 'heartbeat-missed', sessionId: 's', silentMs: 130_000, reason: 'down', atMs: 0 },
  { type: 'deprecation-noted', level: 'warning', note: 'old call', path: 'x', atMs: 0 },
  { type: 'queue-state', ...work, state: 'paused_capacity', reason: undefined, waitedMs: 1, atMs: 0 },
  { type: 'queue-state', ...work, state: 'active', reason: undefined, waitedMs: 1, atMs: 0 },
  { type: 'billing-paused', pausedMs: 0, message: 'no credit', atMs: 0 },
  { type: 'request-retry', path: 'x', attempt: 1, delayMs: 1000, error, atMs: 0 },
  { type: 'request-abandoned', requestType: 'OptimStep', requestId: 'r', target: 'm', cancelled: false, atMs: 0 },
  { type: 'step-end', target: 'm', seqId: 1, metrics: {}, atMs: 0 },
];

function printed(level: LogLevel | undefined, events: readonly TinkerEvent[] = EVENTS): string[] {
  const source = new Subject<TinkerEvent>();
  const lines: string[] = [];
  logTo(source, level, (line) => lines.push(line));
  for (const event of events) source.next(event);
  return lines;
}
afterEach(() => vi.unstubAllEnvs());

describe('the log', () => {
  it('has by default what the service asks to be shown, and what needs somebody to act', () => {
    expect(printed(undefined)).toEqual([
      'tinker-rx error: upgrade now',
      'tinker-rx warning: heartbeats of session s are failing (down); if this continues, the service will end the session',
      'tinker-rx warning: old call',
      'tinker-rx warning: s is paused (paused_capacity): the service is short of capacity, please wait',
      'tinker-rx warning: paused for billing: no credit',
      'tinker-rx warning: OptimStep r was abandoned: it was already sent, still runs and is billed',
    ]);
  });

  it('has a line by default for a session that the service ends, or is not told the end of', () => {
    const events: TinkerEvent[] = [
      { type: 'session-finished', sessionId: 's', status: 'success', atMs: 0 },
      { type: 'session-finished', sessionId: 's', status: 'ended-by-server', atMs: 0 },
      { type: 'session-unfinished', sessionId: 's', reason: 'down', atMs: 0 },
    ];
    expect(printed(undefined, events)).toEqual([
      'tinker-rx warning: the service has ended session s: further calls will fail',
      'tinker-rx warning: the service was not told how session s ended, and will end it later: down',
    ]);
  });

  it('warns of a request that fails again and again, and of an option that a server ignored', () => {
    const retry = (attempt: number): TinkerEvent => ({
      type: 'request-retry',
      path: 'x',
      attempt,
      delayMs: 4000,
      error,
      atMs: 0,
    });
    const ignored: TinkerEvent = { type: 'option-ignored', target: 's', option: 'topkPromptLogprobs', atMs: 0 };
    const here: TinkerEvent = { type: 'loss-runs-here', target: 'focal', reason: 'cannot run torch.svd', atMs: 0 };
    expect(printed(undefined, [retry(1), retry(2), retry(3), ignored, here])).toEqual([
      'tinker-rx warning: attempt 3 failed, next attempt in 4 s: POST /x: 429 slow',
      'tinker-rx warning: the service ignored topkPromptLogprobs: samples of s were drawn without it',
      'tinker-rx warning: the service does not run the loss focal (cannot run torch.svd): it is evaluated in this process, between two passes',
    ]);
  });

  it('has more or less at other levels', () => {
    expect(printed('silent')).toEqual([]);
    expect(printed('error')).toHaveLength(1);
    expect(printed('info')).toHaveLength(8);
    expect(printed('debug')).toHaveLength(9);
    expect(printed('info')).toContain('tinker-rx info: attempt 1 failed, next attempt in 1 s: POST /x: 429 slow');
  });

  it.each([
    ['debug', 9],
    ['INFO', 8],
    ['warn', 6],
    ['nonsense', 6],
    ['silent', 0],
  ])('takes its level from TINKER_LOG=%s', (value, count) => {
    vi.stubEnv('TINKER_LOG', value);
    expect(printed(undefined)).toHaveLength(count);
  });

  it('says the same thing once a minute', () => {
    const at = (atMs: number): TinkerEvent => ({ type: 'session-message', level: 'error', message: 'again', atMs });
    expect(printed('error', [at(0), at(59_999), at(60_000), at(119_999), at(120_000)])).toHaveLength(3);
  });

  it('does not remember what it said for ever', () => {
    const source = new Subject<TinkerEvent>();
    let lines = 0;
    logTo(source, 'error', () => lines++);
    const say = (message: string) => source.next({ type: 'session-message', level: 'error', message, atMs: 0 });
    say('first');
    for (let index = 0; index < 1000; index++) say(String(index));
    say('first');
    expect(lines).toBe(1002);
  });

  it('leaves to machines what only machines read', () => {
    expect(describeEvent(EVENTS.at(-1)!)).toBeUndefined();
  });

  it('warns of a queue that says why work waits, also of one that is active', () => {
    const reason = 'waiting for seq_id 3';
    const events: TinkerEvent[] = (['active', 'unknown'] as const).map((state) => ({
      type: 'queue-state',
      ...work,
      requestId: state,
      state,
      reason,
      waitedMs: 1,
      atMs: 0,
    }));
    expect(printed('warning', events)).toEqual([
      'tinker-rx warning: Sample active waits: waiting for seq_id 3',
      'tinker-rx warning: Sample unknown waits: waiting for seq_id 3',
    ]);
  });
});
