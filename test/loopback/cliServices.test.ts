/** Commands that run until they are interrupted, and the demo. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { firstValueFrom, Subject } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ServiceClient } from 'tinker-rx';
import { LocalTinker } from 'tinker-rx/local';
import { flow$ } from 'tinker-rx/operators';
import { runCli } from '../../src/cli/program.js';
import { run, surroundings } from '../unit/cli/terminal.js';
import { startStepped, type SteppedService } from './support/cycles.js';

const asset = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-cli-'));
  vi.stubEnv('NO_COLOR', '1');
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

/** Starts a command; gives what it writes so far, and how to press Ctrl-C. */
function start(args: readonly string[]) {
  const interrupted$ = new Subject<void>();
  const { surroundings: around, written } = surroundings({ interrupted$ });
  const ended = runCli(args, around);
  const until = (pattern: RegExp) =>
    vi.waitFor(() => expect(written.stdout + written.stderr).toMatch(pattern), { timeout: 240_000, interval: 10 });
  return { written, ended, until, interrupt: () => interrupted$.next() };
}

describe('demo', () => {
  it('trains to a falling loss and samples before and after', async () => {
    const { code, stdout, stderr } = await run(['demo', '--steps', '25']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Watch the run in a browser: http/m);
    const [before, after] = stdout.split('After training:');
    expect(before).toContain('What is the capital of France?');
    expect(after).toContain('What is the capital of France? → "Paris"');
    const [, first, last] = /Loss ([\d.]+) [▁-█]+ ([\d.e-]+) /.exec(after!)!;
    expect(Number(last)).toBeLessThan(Number(first) / 10);
    expect(after).toContain('tinker-rx auth login');
    expect(stderr).toMatch(/train: 100 %, 25\/25 steps/);
  });

  it('leaves nothing behind when it is interrupted', async () => {
    vi.stubEnv('TMPDIR', folder);
    const { ended, until, interrupt, written } = start(['demo', '--steps', '100000']);
    await until(/Training on 20 questions/);
    // The data of the service, and the log.
    expect(readdirSync(folder)).toHaveLength(2);
    interrupt();
    expect(await ended).toBe(130);
    expect(written.stderr).toContain('start over with: tinker-rx demo');
    expect(readdirSync(folder)).toStrictEqual([]);
  });

  it('stops at once also before it trains', async () => {
    vi.stubEnv('TMPDIR', folder);
    const { ended, until, interrupt, written } = start(['demo', '--steps', '100000']);
    await until(/Watch the run/);
    interrupt();
    expect(await ended).toBe(130);
    expect(written.stdout).not.toContain('After training');
    expect(readdirSync(folder)).toStrictEqual([]);
  });

  it('names a dashboard that is live during the run, and how to see the run afterwards', async () => {
    vi.stubEnv('TMPDIR', folder);
    const { ended, until, written } = start(['demo', '--steps', '8']);
    await until(/Watch the run in a browser: /);
    const [, url] = /browser: (http:\/\/127\.0\.0\.1:\d+\/\?token=\S+)/.exec(written.stdout)!;
    expect((await fetch(url!)).status).toBe(200);
    expect(await ended).toBe(0);
    await expect(fetch(url!)).rejects.toThrow();
    const [, log] = /See the run again in a browser: tinker-rx dashboard --log (\S+)/.exec(written.stdout)!;
    expect(readFileSync(join(log!, 'metrics.jsonl'), 'utf8').trim().split('\n')).toHaveLength(8);
    expect(readdirSync(folder)).toStrictEqual([log!.slice(folder.length + 1)]);

    const again = start(['dashboard', '--log', log!]);
    await again.until(/Ctrl-C ends it/);
    expect((await fetch(again.written.stdout.trim())).status).toBe(200);
    again.interrupt();
    expect(await again.ended).toBe(0);
  });

  it('keeps the dashboard open until Ctrl-C if asked to', async () => {
    const log = join(folder, 'log');
    const { ended, until, interrupt, written } = start(['demo', '--steps', '2', '--dashboard', '--log', log]);
    await until(/stays open at \S+ until Ctrl-C/);
    const [, url] = /stays open at (\S+)/.exec(written.stderr)!;
    expect((await fetch(url!)).status).toBe(200);
    interrupt();
    expect(await ended).toBe(0);
    await expect(fetch(url!)).rejects.toThrow();
    expect(readdirSync(log)).toContain('metrics.jsonl');
  });

  it('ships the data of the example', () => {
    expect(readFileSync(asset('assets/questions.jsonl'), 'utf8')).toBe(
      readFileSync(asset('examples/data/questions.jsonl'), 'utf8'),
    );
  });
});

describe('local', () => {
  it('serves until it is interrupted, and keeps its data', async () => {
    const data = join(folder, 'store');
    const { ended, until, interrupt, written } = start(['local', '--data', data, '--key', 'tml-mine', '--clock', '5']);
    await until(/Ready/);
    const [, url] = /^export TINKER_BASE_URL=(\S+)\nexport TINKER_API_KEY=tml-mine\n/.exec(written.stdout)!;
    vi.stubEnv('TINKER_API_KEY', 'tml-mine');
    expect((await run(['model', 'list', '--base-url', url!])).stdout).toContain('tinker-rx/tiny');
    interrupt();
    expect(await ended).toBe(0);
    expect(written.stderr).toContain(`Continue with: tinker-rx local --data ${data}`);
    expect(existsSync(data)).toBe(true);
    await expect(fetch(`${url}/api/v1/healthz`)).rejects.toThrow();
  });

  it('removes a temporary folder, and prints JSON', async () => {
    const { ended, until, interrupt, written } = start(['local', '-f', 'json']);
    await until(/\n}/);
    const { data, api_key, models } = JSON.parse(written.stdout) as { data: string; api_key: string; models: string[] };
    expect(api_key).toMatch(/^tml-/);
    expect(models).toContain('tinker-rx/tiny');
    interrupt();
    expect(await ended).toBe(0);
    expect(existsSync(data)).toBe(false);
  });

  it('says that a port is taken', async () => {
    const local = await LocalTinker.start();
    const { code, stderr } = await run(['local', '--port', new URL(local.url).port]);
    expect(stderr).toMatch(/^Error: port \d+: the port is in use already/);
    expect(code).toBe(1);
    await local.close();
  });
});

describe('train', () => {
  const data = asset('examples/data/questions.jsonl');
  const flags = [
    '-m',
    'tinker-rx/tiny',
    '--rank',
    '4',
    '--batch-size',
    '5',
    '--epochs',
    '6',
    '--checkpoint-every',
    '50',
  ];
  const losses = (log: string) =>
    readFileSync(join(log, 'metrics.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { index: number; loss: number })
      .map(({ index, loss }) => [index, loss]);
  /** Runs so many steps, one cycle each, until the log has them. The next ones have been accepted by then. */
  const runSteps = async ({ local, until }: SteppedService, steps: number, log: string) => {
    for (let step = 1; step <= steps; step++) {
      await until((count) => count('optim_step') > step);
      await local.controls.step();
      await vi.waitFor(() => expect(losses(log).length).toBe(step), { timeout: 240_000 });
    }
  };

  it('goes on after Ctrl-C as if it had never stopped', async () => {
    const stepped = await startStepped();
    await using local = stepped.local;
    vi.stubEnv('TINKER_BASE_URL', local.url);
    vi.stubEnv('TINKER_API_KEY', local.apiKey);
    const [whole, parts] = [join(folder, 'whole'), join(folder, 'parts')];
    expect((await run(['train', data, ...flags, '--log', whole])).code).toBe(0);

    stepped.atFirstPass();
    const { ended, interrupt, written } = start(['train', data, ...flags, '--log', parts]);
    await runSteps(stepped, 3, parts);
    interrupt();
    local.controls.clockMs = 0;
    expect(await ended).toBe(130);
    expect(written.stderr).toContain('Finishing the steps in flight and saving a checkpoint');
    expect(written.stderr).toMatch(
      /Stopped; saved after step \d+\. Continue with: tinker-rx train --resume \S+parts\n$/,
    );
    const done = losses(parts).length;
    expect(done).toBeLessThan(24);

    const resumed = await run(['train', '--resume', parts]);
    expect(resumed.code).toBe(0);
    expect(resumed.stderr).toContain(`continuing after step ${done}`);
    expect(losses(parts)).toStrictEqual(losses(whole));
    expect((await run(['train', '--resume', parts])).stderr).toContain('The run was finished already');
  });

  it('stops within ahead + 1 steps on Ctrl-C, though all rows have come', async () => {
    // Fewer rows than the window of the shuffle: they are all let go at the end of the file, long before they are trained on.
    const stepped = await startStepped();
    await using local = stepped.local;
    vi.stubEnv('TINKER_BASE_URL', local.url);
    vi.stubEnv('TINKER_API_KEY', local.apiKey);
    stepped.atFirstPass();
    const log = join(folder, 'soon');
    const { ended, interrupt, written } = start([
      'train',
      data,
      ...flags.slice(0, 5),
      '1',
      '--epochs',
      '1',
      '--log',
      log,
    ]);
    await runSteps(stepped, 2, log);
    interrupt();
    local.controls.clockMs = 0;
    expect(await ended).toBe(130);
    const after = losses(log).length;
    // One that was sent, and one ahead of it.
    expect(after).toBeLessThanOrEqual(2 + 1 + 1);
    expect(written.stderr).toContain(`Stopped; saved after step ${after}. Continue with:`);
    const saved = readFileSync(join(log, 'checkpoints.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(saved).toMatchObject([{ steps: after, batches: after, name: `step-${String(after).padStart(6, '0')}` }]);
  });

  it('shows the run on a dashboard while it goes on', async () => {
    const stepped = await startStepped();
    await using local = stepped.local;
    stepped.atFirstPass();
    vi.stubEnv('TINKER_BASE_URL', local.url);
    vi.stubEnv('TINKER_API_KEY', local.apiKey);
    const { ended, until, written } = start([
      'train',
      data,
      ...flags,
      '--steps',
      '12',
      '--dashboard',
      '--log',
      join(folder, 'd'),
    ]);
    await until(/Dashboard: /);
    const [, url] = /Dashboard: (\S+)/.exec(written.stderr)!;
    await stepped.until((count) => count('optim_step') > 0);
    expect((await fetch(url!)).status).toBe(200);
    const reports = await firstValueFrom(flow$);
    expect(reports.map(({ name }) => name)).toStrictEqual(['train', 'batch', 'tokenize']);
    local.controls.clockMs = 0;
    expect(await ended).toBe(0);
    await expect(fetch(url!)).rejects.toThrow();
  });

  it('stops at once on the second Ctrl-C', async () => {
    const stepped = await startStepped();
    await using local = stepped.local;
    vi.stubEnv('TINKER_BASE_URL', local.url);
    vi.stubEnv('TINKER_API_KEY', local.apiKey);
    stepped.atFirstPass();
    const { ended, interrupt, written } = start(['train', data, ...flags, '--log', join(folder, 'x')]);
    await stepped.until((count) => count('optim_step') > 0);
    // No cycle starts: what was sent never ends, and nobody waits for it.
    interrupt();
    interrupt();
    expect(await ended).toBe(130);
    expect(written.stderr).toContain('Stopped; nothing is saved yet.');
  });
});

describe('checkpoint download', () => {
  it('deletes its temporary export also when it is interrupted', async () => {
    await using local = await LocalTinker.start();
    vi.stubEnv('TINKER_BASE_URL', local.url);
    vi.stubEnv('TINKER_API_KEY', local.apiKey);
    await using service = new ServiceClient();
    const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4 });
    const { path } = await trainer.saveState('x');
    local.controls.latencyMs = (endpoint) => (endpoint.startsWith('files/') ? 600_000 : 0);
    const { ended, until, interrupt, written } = start(['checkpoint', 'download', path, '-o', folder]);
    await until(/Exporting/);
    await vi.waitFor(() => expect(readdirSync(folder).join()).toContain('.partial'), { timeout: 240_000 });
    expect((await run(['checkpoint', 'list'])).stdout).toContain('external_weights/download');
    interrupt();
    expect(await ended).toBe(130);
    expect(written.stderr).toContain('Error: Interrupted\nRun the same command again');
    expect((await run(['checkpoint', 'list'])).stdout).not.toContain('external_weights');
  });
});

describe('a service in trouble', () => {
  const connectTo = (local: LocalTinker) => {
    vi.stubEnv('TINKER_BASE_URL', local.url);
    vi.stubEnv('TINKER_API_KEY', local.apiKey);
  };
  const status = (endpoint: string, code: number, nth?: readonly number[]) => ({
    rules: [
      {
        endpoint,
        ...(nth === undefined ? {} : { nth }),
        fault: { type: 'status' as const, status: code, detail: 'no' },
      },
    ],
  });

  it('that wants to be paid is told at once, not after an hour of waiting', async () => {
    await using local = await LocalTinker.start({ faults: status('*', 402) });
    connectTo(local);
    const { code, stderr } = await run(['run', 'list']);
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Error: Billing issue') as string,
    });
  });

  it('that fails in passing does not end a long job', async () => {
    await using local = await LocalTinker.start({ faults: status('asample', 503, [1, 2]) });
    connectTo(local);
    const { code, stdout } = await run(['sample', '-m', 'tinker-rx/tiny', 'Hello', '--max-tokens', '3']);
    expect(code).toBe(0);
    expect(stdout).not.toBe('');
  });
});

describe('serve', () => {
  it('answers callers of other APIs until it is interrupted, also for a checkpoint they name', async () => {
    await using local = await LocalTinker.start();
    vi.stubEnv('TINKER_BASE_URL', local.url);
    vi.stubEnv('TINKER_API_KEY', local.apiKey);
    const service = new ServiceClient();
    const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 8 });
    const { path } = await trainer.saveWeightsForSampler('step-000007');
    const { ended, until, interrupt, written } = start([
      'serve',
      '--model',
      'tinker-rx/tiny',
      '--key',
      'a-key-of-mine',
    ]);
    await until(/Ctrl-C ends the gateway/);
    const [, url] = /OPENAI_BASE_URL=(\S+)/.exec(written.stdout)!;
    const ask = async (model: string, key = 'a-key-of-mine') => {
      const response = await fetch(`${url!}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 3, temperature: 0 }),
      });
      return [
        response.status,
        ((await response.json()) as { usage?: { completion_tokens: number } }).usage?.completion_tokens,
      ];
    };
    expect(await ask('tinker-rx/tiny')).toEqual([200, 3]);
    expect(await ask(path)).toEqual([200, 3]);
    expect(await ask(`${trainer.modelId}@7`)).toEqual([200, 3]);
    expect((await ask(`${trainer.modelId}@8`))[0]).toBe(404);
    expect((await ask('tinker-rx/tiny', 'wrong-key'))[0]).toBe(401);
    interrupt();
    expect(await ended).toBe(0);
    await expect(fetch(url!)).rejects.toThrow();
    await service.close();
  });

  it('takes more keys, hosts and an access log', async () => {
    await using local = await LocalTinker.start();
    vi.stubEnv('TINKER_BASE_URL', local.url);
    vi.stubEnv('TINKER_API_KEY', local.apiKey);
    const file = join(folder, 'keys.json');
    writeFileSync(file, JSON.stringify([{ key: 'key-of-alice', name: 'alice' }]));
    const flags = ['--keys', file, '--allow-host', 'app.example', '--access-log', '--strict', '--drain', '1'];
    const { ended, until, interrupt, written } = start(['serve', '--model', 'tinker-rx/tiny', ...flags]);
    await until(/Ctrl-C ends the gateway/);
    const [, url] = /OPENAI_BASE_URL=(\S+)/.exec(written.stdout)!;
    const headers = { authorization: 'Bearer key-of-alice', origin: 'https://app.example' };
    expect((await fetch(`${url!}/models`, { headers })).status).toBe(200);
    await until(/"path":"\/v1\/models","status":200,.*"key":"alice"/);
    interrupt();
    expect(await ended).toBe(0);
  });
});

describe('dashboard', () => {
  it('shows a log until it is interrupted', async () => {
    const { ended, until, interrupt, written } = start(['dashboard', '--log', folder]);
    await until(/Ctrl-C ends it/);
    const url = written.stdout.trim();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=/);
    expect((await fetch(url)).status).toBe(200);
    expect((await fetch(url.replace(/token=.*/, 'token=wrong'))).status).not.toBe(200);
    interrupt();
    expect(await ended).toBe(0);
    await expect(fetch(url)).rejects.toThrow();
  });
  it('fails where there is no folder', async () => {
    expect((await run(['dashboard', '--log', join(folder, 'none')])).code).toBe(1);
  });
});
