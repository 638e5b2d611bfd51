import { spawn } from 'node:child_process';
import { watch, type FSWatcher } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { expect, it } from 'vitest';
import { LocalTinker } from '../../src/local/index.js';
import { folderOf } from '../../src/local/store/names.js';
import { connect, type Json } from './localCaller.js';
import { FakeEngine } from './localFakeEngine.js';
import { closeAfterEach, temporaryFolder } from './localFixture.js';

closeAfterEach();

/** Node 20 runs no TypeScript: the child is bundled first. */
async function bundleChild(folder: string): Promise<string> {
  const file = join(folder, 'child.mjs');
  const bundle = await rolldown({
    input: fileURLToPath(new URL('localKillChild.ts', import.meta.url)),
    platform: 'node',
    external: ['rolldown'],
    logLevel: 'silent',
  });
  await bundle.write({ file, format: 'esm', codeSplitting: false });
  await bundle.close();
  return file;
}

/**
 * Lets the child save and kills it once its first save was acknowledged and so many changes were then seen in the folder
 * of the checkpoint that it overwrites: in the middle of a save. Gives every line that it wrote.
 */
function killAtChange(script: string, data: string, change: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [script, data], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    let watcher: FSWatcher | undefined;
    child.stdout.on('data', (text: Buffer) => {
      output += text.toString();
      const [, run] = /tinker:\/\/(.+)\/weights\/latest/.exec(output) ?? [];
      if (run === undefined || watcher !== undefined) return;
      let changes = 0;
      watcher = watch(join(data, 'checkpoints', folderOf(run), 'weights', 'latest'), () => {
        if (++changes === change) child.kill('SIGKILL');
      });
    });
    child.on('error', reject);
    child.on('close', (_, signal) => {
      watcher?.close();
      if (signal === 'SIGKILL') resolve(output.split('\n').slice(0, -1));
      else reject(new Error(`the child ended by itself: ${output}`));
    });
  });
}

it('leaves every checkpoint whole, old or new, when it is killed at any moment', async () => {
  const folder = await temporaryFolder();
  const script = await bundleChild(folder);
  let inTheMiddle = 0;
  for (let round = 0; round < 8; round++) {
    const data = join(folder, `data-${round}`);
    const lines = await killAtChange(script, data, 1 + round * 2);
    inTheMiddle += (await temporaries(join(data, 'checkpoints'))) > 0 ? 1 : 0;
    const engine = new FakeEngine();
    const local = await LocalTinker.start({ engine, data });
    try {
      const caller = connect(local);
      const { checkpoints } = await caller.get('checkpoints?limit=1000');
      const paths = (checkpoints as Json[]).map((checkpoint) => checkpoint['tinker_path'] as string);
      const session = await caller.createSession();
      const steps = new Map<string, number>();
      for (const [index, path] of paths.entries()) {
        const load = { session_id: session, model_seq_id: index, path, optimizer: path.includes('/weights/') };
        const answer = await caller.future('load_weights', load);
        expect(answer, path).toMatchObject({ model_id: `${session}:train:${index}` });
        steps.set(path, engine.models.get(`${session}:train:${index}`)!.step);
      }
      const deleted = new Set(lines.filter((line) => line.startsWith('deleted')).map((line) => line.split(' ')[1]!));
      for (const line of lines.filter((entry) => entry.startsWith('saved'))) {
        const [, path = '', step] = line.split(' ');
        // What was acknowledged is there, unless a deletion was under way.
        if (deleted.has(path) || !(path.includes('/sampler_weights/') || path.endsWith('/latest'))) continue;
        expect(steps.get(path), line).toBeGreaterThanOrEqual(Number(step));
      }
      expect(await temporaries(join(data, 'checkpoints'))).toBe(0);
    } finally {
      await local.close();
    }
  }
  // Otherwise the kills were never in the middle of a save and the test shows nothing.
  expect(inTheMiddle).toBeGreaterThan(0);
});

/** Files that only an interrupted save leaves. */
async function temporaries(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true });
  return names.filter((name) => name.includes('.tmp-')).length;
}
