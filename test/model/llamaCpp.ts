import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const VERSION = '3.22.1';
const FOLDER = fileURLToPath(new URL('../../node_modules/.cache/tinker-rx/llama-cpp/', import.meta.url));
const PREBUILT: Readonly<Record<string, string>> = {
  'linux-x64': 'linux-x64',
  'linux-arm64': 'linux-arm64',
  'darwin-arm64': 'mac-arm64-metal',
  'darwin-x64': 'mac-x64',
};

/** Loads a GGUF file with llama.cpp on the CPU, and prints the tokens that follow each prompt, the most likely one at a time. */
const PROGRAM = `
import { getLlama } from 'node-llama-cpp';
const { path, prompts, maxTokens, texts } = JSON.parse(process.argv[2]);
const llama = await getLlama({ gpu: false, build: 'never', logLevel: 'error' });
const model = await llama.loadModel({ modelPath: path });
const context = await model.createContext({ contextSize: 512, flashAttention: false, threads: 1 });
const sequence = context.getSequence();
const greedy = [];
for (const prompt of prompts) {
  const tokens = [];
  for await (const token of sequence.evaluate(prompt, { temperature: 0 })) {
    tokens.push(token);
    if (tokens.length === maxTokens || model.isEogToken(token)) break;
  }
  greedy.push(tokens);
  await sequence.clearHistory();
}
console.log(JSON.stringify({ greedy, tokenized: texts.map((text) => model.tokenize(text)) }));
process.exit(0);
`;

export interface LlamaCppAnswer {
  readonly greedy: readonly (readonly number[])[];
  /** Tokens of the texts, special ones as text. */
  readonly tokenized: readonly (readonly number[])[];
}

/** Whether llama.cpp could be installed: `node-llama-cpp` with the prebuilt binary of this machine, in node_modules/.cache. */
export async function hasLlamaCpp(): Promise<boolean> {
  const binary = PREBUILT[`${process.platform}-${process.arch}`];
  if (binary === undefined) return missing('no prebuilt binary for this machine');
  await mkdir(FOLDER, { recursive: true });
  await writeFile(join(FOLDER, 'greedy.mjs'), PROGRAM);
  if (existsSync(join(FOLDER, 'node_modules', 'node-llama-cpp'))) return true;
  await writeFile(join(FOLDER, 'package.json'), '{ "private": true, "type": "module" }');
  const packages = [`node-llama-cpp@${VERSION}`, `@node-llama-cpp/${binary}@${VERSION}`];
  const options = ['--omit=optional', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  try {
    await run('npm', ['install', ...options, ...packages], { cwd: FOLDER });
  } catch (error) {
    return missing((error as Error).message);
  }
  return true;
}

function missing(why: string): false {
  console.warn(`llama.cpp is not here, its tests are skipped: ${why}`);
  return false;
}

/** What llama.cpp makes of a GGUF file. */
export async function askLlamaCpp(request: {
  readonly path: string;
  readonly prompts: readonly (readonly number[])[];
  readonly maxTokens: number;
  readonly texts: readonly string[];
}): Promise<LlamaCppAnswer> {
  const { stdout } = await run('node', ['greedy.mjs', JSON.stringify(request)], { cwd: FOLDER, maxBuffer: 2 ** 26 });
  return JSON.parse(stdout.trim().split('\n').at(-1)!) as LlamaCppAnswer;
}
