import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { from, lastValueFrom } from 'rxjs';
import { expect, it } from 'vitest';
import type { Step } from '../../src/operators/index.js';
import { tensorBoardLog, wandbLog } from '../../src/sinks/index.js';

const SCRIPT = fileURLToPath(new URL('../parity/open_logs.py', import.meta.url));

/** Answers as much of wandb's API as an upload asks for. Hand-written after what `wandb sync` sends. */
async function startWandb() {
  const lines: Record<string, unknown>[] = [];
  const configs: Record<string, { readonly value: unknown }>[] = [];
  const project = { id: 'p', name: 'facts', entity: { id: 'e', name: 'me' } };
  const bucket = { id: 'r', name: 'abc123', displayName: 'first', config: '{}', historyLineCount: 0, project };
  const data = {
    viewer: { id: 'u', entity: 'me', username: 'me', flags: '{}', teams: { edges: [] } },
    serverInfo: { features: [] },
    upsertBucket: { bucket, inserted: true },
    model: { bucket: null },
    createRunFiles: { runID: 'r', uploadHeaders: [], files: [] },
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const bytes = Buffer.concat(chunks);
      const text = (request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString();
      const body = JSON.parse(text || '{}') as {
        variables?: { config?: string };
        files?: Record<string, { content: string[] }>;
      };
      if (typeof body.variables?.config === 'string') configs.push(JSON.parse(body.variables.config) as never);
      for (const line of body.files?.['wandb-history.jsonl']?.content ?? [])
        lines.push(JSON.parse(line) as Record<string, unknown>);
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(request.url === '/graphql' ? { data } : { limits: {} }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () => new Promise((resolve) => server.close(resolve));
  return { url, lines, configs, [Symbol.asyncDispose]: async () => void (await close()) };
}

const step = (index: number): Step => ({
  ...{ index, loss: 1 / (index + 1), lossSum: 5, datums: 3, tokens: 100, learningRate: 0.5, batches: index + 1 },
  durationMs: 12,
  metrics: { 'env/all/reward/total': index / 4 },
  ...(index === 3 ? { evaluations: [{ index: 2, metrics: { accuracy: 0.75 }, durationMs: 1 }] } : {}),
});

it('TensorBoard reads the event files, and wandb uploads the offline run', { timeout: 600_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'logs-'));
  const events = join(folder, 'events');
  // Longer than a block of the file.
  const config = { model: 'tiny', long: 'x'.repeat(70_000) };
  const steps = Array.from({ length: 40 }, (_, index) => step(index));
  await lastValueFrom(
    from(steps).pipe(
      tensorBoardLog(events),
      wandbLog(folder, { project: 'facts', name: 'first', id: 'abc123', config }),
    ),
  );
  // A run that goes on replaces what came after its first step.
  await lastValueFrom(from([{ ...step(38), loss: 7 }]).pipe(tensorBoardLog(events)));
  await using wandb = await startWandb();
  const run = readdirSync(folder).find((name) => name.startsWith('offline-run-'))!;
  const env = { ...process.env, WANDB_BASE_URL: wandb.url };
  const { stdout } = await promisify(execFile)('python3', [SCRIPT, events, join(folder, run)], { env, cwd: folder });
  const {
    scalars,
    code,
    wandb: said,
  } = JSON.parse(stdout.trim().split('\n').at(-1)!) as {
    scalars: Record<string, [number, number][]>;
    code: number;
    wandb: string;
  };
  rmSync(folder, { recursive: true });
  expect(scalars['loss']!.slice(0, 2)).toStrictEqual([
    [0, 1],
    [1, 0.5],
  ]);
  expect(scalars['loss']!.at(-1)).toStrictEqual([38, 7]);
  expect(scalars['loss']).toHaveLength(39);
  expect(scalars['env/all/reward/total']![4]).toStrictEqual([4, 1]);
  expect(scalars['evaluation/accuracy']).toStrictEqual([[2, 0.75]]);
  expect({ code, said }).toMatchObject({ code: 0, said: expect.stringContaining('Finished syncing') as string });
  expect(wandb.configs[0]).toMatchObject({ model: { value: 'tiny' }, long: { value: config.long } });
  expect(wandb.lines).toHaveLength(40);
  expect(wandb.lines[3]).toMatchObject({
    _step: 3,
    loss: 0.25,
    'env/all/reward/total': 0.75,
    'evaluation/accuracy': 0.75,
  });
});
