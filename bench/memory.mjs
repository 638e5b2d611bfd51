// What a large file costs in memory on its way into a slow trainer: peak of the process, beyond that of an empty run.
// Run: npm run build && node bench/memory.mjs      (ROWS=<n> for fewer, DIST=<folder> measures another build,
// GATE=off shows what happens where the gate does not reach the source; it takes the file's size and more)
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROWS = Number(process.env.ROWS ?? 1_000_000);
const LIMIT_MB = 150;
const dist = resolve(process.env.DIST ?? 'dist');

if (process.argv[2] === 'run') {
  await run(process.argv[3]);
} else {
  const folder = mkdtempSync(join(tmpdir(), 'memory-'));
  try {
    const [empty, full] = [join(folder, 'empty.jsonl'), join(folder, 'full.jsonl')];
    writeFileSync(empty, '');
    generate(full);
    console.log(`${ROWS} rows, ${(statSync(full).size / 1e6).toFixed(0)} MB: fromJsonl → map → filter → batch → train`);
    const base = measure(empty);
    const peak = measure(full);
    const beyond = peak.peakMb - base.peakMb;
    console.log(`empty run  ${base.peakMb.toFixed(0)} MB`);
    console.log(
      `full run   ${peak.peakMb.toFixed(0)} MB, ${peak.steps} steps, ${peak.rows} rows read, ${peak.seconds.toFixed(1)} s`,
    );
    console.log(`at most ${peak.mostAhead} rows were read beyond what was trained on`);
    console.log(`beyond     ${beyond.toFixed(0)} MB (limit ${LIMIT_MB} MB): ${beyond <= LIMIT_MB ? 'ok' : 'TOO MUCH'}`);
    process.exitCode = beyond <= LIMIT_MB ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** About a kilobyte a row, each with its own text. */
function generate(path) {
  const descriptor = openSync(path, 'w');
  const words = Array.from({ length: 160 }, (_, place) => `word${place}`);
  for (let row = 0; row < ROWS;) {
    let block = '';
    for (const end = Math.min(ROWS, row + 1000); row < end; row++) {
      words[row % words.length] = `word${row}`;
      block += `${JSON.stringify({ id: row, text: words.join(' ').slice(0, 980) })}\n`;
    }
    writeSync(descriptor, block);
  }
  closeSync(descriptor);
}

function measure(path) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), 'run', path], {
    encoding: 'utf8',
    env: { ...process.env, DIST: dist },
    maxBuffer: 1e8,
  });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

async function run(path) {
  const { asyncScheduler, filter, map, subscribeOn, tap, timer } = await import('rxjs');
  const load = (name) => import(pathToFileURL(`${dist}/${name}/index.js`).href);
  const [{ batch, train }, { fromJsonl }, { ModelInput }] = await Promise.all([
    load('operators'),
    load('sources'),
    import(pathToFileURL(`${dist}/wire/modelInput.js`).href),
  ]);
  const SIZE = 128;
  const started = performance.now();
  let [rows, trained, steps, mostAhead] = [0, 0, 0, 0];
  // One step after the other, 12 ms each: the file could be read in a fraction of that.
  let freeAt = 0;
  const service = {
    forwardBackward: (data) => {
      freeAt = Math.max(freeAt, performance.now()) + 12;
      return timer(freeAt - performance.now()).pipe(
        map(() => {
          trained += data.length;
          return { lossFnOutputType: '', lossFnOutputs: [], metrics: { 'loss:sum': 1 } };
        }),
      );
    },
    optimStep: () => timer(freeAt - performance.now()).pipe(map(() => ({}))),
  };
  const toDatum = ({ text }) => {
    const tokens = Int32Array.from({ length: 256 }, (_, place) => text.charCodeAt(place * 3));
    return { modelInput: ModelInput.fromInts(tokens), lossFnInputs: { target_tokens: tokens } };
  };
  const source = fromJsonl(path).pipe(process.env.GATE === 'off' ? subscribeOn(asyncScheduler) : (same) => same);
  await source
    .pipe(
      tap(() => {
        rows++;
        mostAhead = Math.max(mostAhead, Math.floor(rows / 2) - trained);
      }),
      filter(({ id }) => id % 2 === 0),
      map(toDatum),
      batch({ size: SIZE }),
      train(service, { loss: 'cross_entropy', ahead: 1 }),
    )
    .forEach(() => steps++);
  const peakMb = process.resourceUsage().maxRSS / 1024;
  const seconds = (performance.now() - started) / 1000;
  console.log(JSON.stringify({ peakMb, steps, rows, mostAhead, seconds }));
}
