/** Lines of progress: what they show, when, and on which terminals. Time is what the context says it is. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Renderer } from '../../../src/chat/renderers/core/Renderer.js';
import { hubFile } from '../../../src/chat/tokenizer/index.js';
import { byteBar } from '../../../src/cli/terminal/byteBar.js';
import type { Context } from '../../../src/cli/context.js';
import { loadRenderer } from '../../../src/cli/loadRenderer.js';
import { SampleTally } from '../../../src/cli/sample/SampleTally.js';
import { waitFor } from '../../../src/cli/terminal/waitFor.js';
import type { TinkerEvent } from '../../../src/client/events.js';
import { fitLine } from '../../../src/support/terminal/progressLine.js';
import { cutTo, textWidth } from '../../../src/support/terminal/textWidth.js';
import { HubServer } from '../chat/tokenizerHubServer.js';
import { contextOf } from './terminal.js';

/** A context whose clock the test turns. */
function turning(columns?: number): { context: Context; written: { stderr: string }; clock: { ms: number } } {
  const clock = { ms: 0 };
  const { context, written } = contextOf(columns === undefined ? {} : { columns });
  return { context: { ...context, now: () => clock.ms }, written, clock };
}
/** What stood on the line, one state after the other. */
const states = (text: string) => text.split('\r').map((state) => state.replace('\u001b[K', ''));
const later = <T>(ms: number, value: T) => new Promise<T>((resolve) => setTimeout(() => resolve(value), ms));

describe('waitFor', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('shows nothing of what is done within a second', async () => {
    const { context, written, clock } = turning(80);
    clock.ms = 999;
    const waiting = waitFor(context, 'asking', later(250, 'answer'));
    await vi.advanceTimersByTimeAsync(250);
    expect(await waiting).toBe('answer');
    expect(written.stderr).toBe('');
  });

  it('shows the time and what the service waits for on one line, and takes it away', async () => {
    const { context, written, clock } = turning(80);
    const events$ = new Subject<TinkerEvent>();
    const waiting = waitFor(context, 'asking', later(500, 0), events$);
    events$.next({ type: 'queue-state', state: 'paused_capacity', reason: 'busy\u001b[2J', atMs: 0 } as never);
    clock.ms = 7300;
    await vi.advanceTimersByTimeAsync(500);
    await waiting;
    expect(states(written.stderr)[1]).toBe('⠸ asking … 7 s  waiting: paused capacity (busy\ufffd[2J)');
    expect(written.stderr.endsWith('\r\u001b[K')).toBe(true);
    expect(written.stderr).not.toContain('\n');
  });

  it('writes a line every ten seconds where there is no terminal', async () => {
    const { context, written, clock } = turning();
    const waiting = waitFor(context, 'asking', later(700, 0));
    await vi.advanceTimersByTimeAsync(150);
    clock.ms = 9000;
    await vi.advanceTimersByTimeAsync(150);
    clock.ms = 10_000;
    await vi.advanceTimersByTimeAsync(400);
    await waiting;
    expect(written.stderr).toBe('asking … 10 s\n');
  });

  it('leaves the line to who shows progress already', async () => {
    const { context, written, clock } = turning(80);
    const waiting = waitFor(context, () => undefined, later(300, 0));
    clock.ms = 5000;
    await vi.advanceTimersByTimeAsync(300);
    await waiting;
    expect(written.stderr).toBe('');
  });
});

describe('byteBar', () => {
  it('is a bar with bytes, speed and time on a terminal, and stays there', () => {
    const { context, written, clock } = turning(100);
    const bar = byteBar(context, 'model.safetensors');
    bar.update(0, 4 * 1024 ** 2);
    clock.ms = 1000;
    bar.update(1024 ** 2, 4 * 1024 ** 2);
    expect(states(written.stderr).at(-1)).toBe(
      `model.safetensors  ${'█'.repeat(6)}${'░'.repeat(18)}  25 %  1.0 MB of 4.0 MB  1.0 MB/s  0:03 left`,
    );
    bar.end();
    expect(written.stderr.endsWith('\n')).toBe(true);
  });
  it('counts the speed from where an earlier try stopped', () => {
    const { context, written, clock } = turning(100);
    const bar = byteBar(context, 'x');
    bar.update(3_000_000, undefined);
    clock.ms = 1000;
    bar.update(3_001_024, undefined);
    expect(written.stderr).toContain('2.9 MB  1.0 KB/s');
  });
  it('is a line every ten seconds elsewhere', () => {
    const { context, written, clock } = turning();
    const bar = byteBar(context, 'x');
    for (clock.ms = 0; clock.ms <= 25_000; clock.ms += 500) bar.update(clock.ms, 50_000);
    bar.end();
    expect(written.stderr).toBe(
      'x: 20 %, 9.8 KB of 48.8 KB, 1000 B/s, 0:40 left\nx: 40 %, 19.5 KB of 48.8 KB, 1000 B/s, 0:30 left\n',
    );
  });
});

describe('a line on a narrow terminal', () => {
  const facts = [
    { text: '34 %', keep: 4 },
    { text: '340/1000 steps' },
    { text: '4.2 steps/s', keep: 1 },
    { text: '2:37 left', keep: 3 },
    { text: 'loss 0.8123' },
  ];
  it.each([
    [90, 'train  ████████░░░░░░░░░░░░░░░░  34 %  340/1000 steps  4.2 steps/s  2:37 left  loss 0.8123'],
    [80, 'train  █████░░░░░░░░░  34 %  340/1000 steps  4.2 steps/s  2:37 left  loss 0.8123'],
    [64, 'train  ████░░░░░░░  34 %  340/1000 steps  2:37 left  loss 0.8123'],
    [53, 'train  34 %  340/1000 steps  2:37 left  loss 0.8123'],
    [39, 'train  340/1000 steps  loss 0.8123'],
    [20, 'train  340/1000 ste…'],
  ])('of %d cells says what matters most', (columns, line) => {
    expect(fitLine('train', 0.34, facts, columns)).toBe(line);
    expect(textWidth(line)).toBeLessThanOrEqual(columns);
  });
  it('is never wider, whatever stands on it', () => {
    for (let columns = 1; columns < 120; columns++)
      expect(textWidth(fitLine('日本語のデータ.jsonl', 0.5, facts, columns))).toBeLessThanOrEqual(columns);
    expect(cutTo('日本語', 4)).toBe('日…');
    expect(cutTo('日本語', 6)).toBe('日本語');
  });
});

describe('sampling', () => {
  it('counts prompts against the file, and against their number once that is known', () => {
    let ms = 0;
    const tally = new SampleTally(() => ms);
    tally.asked = 200;
    tally.finish({ sequences: [{ tokens: new Int32Array(50) }] } as never);
    ms = 10_000;
    expect(tally.status()).not.toHaveProperty('fraction');
    expect(tally.status(0.25).fraction).toBe(0.25 / 200);
    expect(tally.status(0.25).facts!.map(({ text }) => text)).toStrictEqual([
      '1 prompt done',
      '199 in flight',
      '5.0 tokens/s',
      '10 s',
    ]);
    tally.allAsked = true;
    tally.failed = 3;
    expect(tally.status()).toMatchObject({ fraction: 0.02 });
    expect(
      tally
        .status()
        .facts!.map(({ text }) => text)
        .slice(0, 2),
    ).toStrictEqual(['4/200 prompts', '3 failed']);
  });
});

describe('loading a tokenizer', () => {
  let home: string;
  let hub: HubServer;
  beforeEach(async () => {
    home = mkdtempSync(join(tmpdir(), 'tinker-rx-progress-'));
    hub = await HubServer.start({ 'tokenizer.json': { content: Buffer.alloc(4 * 1024 ** 2, 'x'), isLarge: true } });
  });
  afterEach(async () => {
    await hub[Symbol.asyncDispose]();
    rmSync(home, { recursive: true });
  });

  it('shows the bytes of its files while they come, then that it is being made', async () => {
    const { context, written, clock } = turning(100);
    let rest = () => {};
    hub.intercept = ({ method }, response) => {
      if (method !== 'GET') return false;
      response.writeHead(200, { 'content-length': 4 * 1024 ** 2 });
      response.write(Buffer.alloc(1024 ** 2, 'x'));
      rest = () => response.end(Buffer.alloc(3 * 1024 ** 2, 'x'));
      return true;
    };
    let make = (_: Renderer) => {};
    const made = new Promise<Renderer>((resolve) => (make = resolve));
    const options = { env: { HF_ENDPOINT: hub.url, HF_HOME: home } };
    const load = () => hubFile('org/name', 'tokenizer.json', options).then(() => made);
    const loading = loadRenderer(context, load, new Subject());
    await expect.poll(() => hub.requests('GET')).toHaveLength(1);
    await vi.waitFor(() => {
      clock.ms += 500;
      expect(written.stderr).toMatch(/tokenizer of org\/name {2}█{6}░{18} {2}25 % {2}1\.0 MB of 4\.0 MB/);
    }, 240_000);
    rest();
    await vi.waitFor(() => {
      clock.ms += 500;
      expect(states(written.stderr).at(-1)).toMatch(/^. loading the tokenizer … \d+ s$/);
    }, 240_000);
    const wanted = {} as Renderer;
    make(wanted);
    expect(await loading).toBe(wanted);
    expect(written.stderr.endsWith('\r\u001b[K')).toBe(true);
  });

  it('says that the hub cannot be reached while it tries again', async () => {
    const { context, written, clock } = turning(200);
    hub.intercept = (_request, response) => {
      response.writeHead(503).end();
      return true;
    };
    const options = { env: { HF_ENDPOINT: hub.url, HF_HOME: home }, retries: 1, retryDelayMs: 1500 };
    const loading = loadRenderer(context, () => hubFile('org/name', 'x', options) as never, new Subject());
    loading.catch(() => {});
    await expect.poll(() => hub.seen).toHaveLength(1);
    clock.ms = 2000;
    await expect(loading).rejects.toThrow('503');
    expect(written.stderr).toContain(`loading the tokenizer (${hub.url} answers 503 for org/name; trying again) … 2 s`);
  });
});
