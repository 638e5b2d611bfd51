import { readdirSync, readFileSync } from 'node:fs';
import { type Snippet, root } from './snippets.js';

/** What examples may use without saying where it comes from. A name of the package or of RxJS needs no line here. */
export const EXAMPLE_NAMES = `
import type { Observable } from 'rxjs';
import type {
  Datum, ModelInput, RestClient, SamplingClient, SamplingParams, ServiceClient, TrainingClient,
} from 'tinker-rx';
import type { Renderer, Tokenizer } from 'tinker-rx/chat';
import type { Dashboard } from 'tinker-rx/dashboard';
import type { Cost } from 'tinker-rx/evals';
import type { TracedLoss } from 'tinker-rx/losses';
import type { Step, TrainOptions } from 'tinker-rx/operators';
import type { Agent, McpClient } from 'tinker-rx/rl';
export * from 'rxjs';
export * from 'tinker-rx';
export * from 'tinker-rx/operators';
export * from 'tinker-rx/sources';
export * from 'tinker-rx/sinks';
export * from 'tinker-rx/chat';
export * from 'tinker-rx/losses';
export * from 'tinker-rx/rl';
export * from 'tinker-rx/evals';
export * from 'tinker-rx/local';
export * from 'tinker-rx/serve';
export * from 'tinker-rx/ai-sdk';
export * from 'tinker-rx/opentelemetry';
export * from 'tinker-rx/adapters';
export * from 'tinker-rx/conformance';
export * from 'tinker-rx/dashboard';
export * from 'tinker-rx/testing';
export { it } from 'vitest';
export { z } from 'zod';
export { generateText, wrapLanguageModel } from 'ai';
export { OpenAI } from 'openai';
export { createOpenAICompatible } from '@ai-sdk/openai-compatible';
export * as http from 'node:http';
export interface Task { readonly question: string; readonly answer: string }
export type Fact = Task;
export interface Riddle { readonly riddle: string; readonly solution: string }
export interface Sum { readonly question: string; readonly sum: number }
export interface Row { readonly text: string }
export declare const service: ServiceClient;
export declare const rest: RestClient;
export declare const trainer: TrainingClient;
export declare const otherTrainer: TrainingClient;
export declare const sampler: SamplingClient;
export declare const teacher: SamplingClient;
export declare const renderer: Renderer;
export declare const tokenizer: Tokenizer;
export declare const dashboard: Dashboard;
export declare const options: TrainOptions;
export declare const batches: Observable<readonly Datum[]>;
export declare const rows: Observable<Datum>;
export declare const datums: readonly Datum[];
export declare const data: readonly Datum[];
export declare const prompts: Observable<ModelInput>;
export declare const prompt: ModelInput;
export declare const mcpClient: McpClient;
export declare const tasks: Observable<Task>;
export declare const agent: Agent<Task>;
export declare const steps: Observable<Step>;
export declare const cost$: Observable<Cost>;
export declare const loss: TracedLoss;
export declare const samplingParams: SamplingParams;
export declare const chosen: Datum;
export declare const rejected: Datum;
export declare const texts: readonly string[];
export declare const rows$: Observable<Row>;
export declare const newestFile: Promise<string>;
export declare const baseModel: string;
export declare const model: string;
export declare const learningRate: number;
export declare const signal: AbortSignal;
// The program around the example: whatever it is.
export declare const button: any;
export declare const database: any;
export declare const draw: any;
export declare const askJudge: any;
export declare const askForeignApi: any;
export declare const tools: any;
`;

/** Names that mean something else in one file's example. */
const OVERRIDES: Readonly<Record<string, string>> = {
  'src/chat/datum/batchMetrics.ts': "declare const batch: readonly import('tinker-rx').Datum[];",
  'src/rl/log/resumeRl.ts': "declare const options: import('tinker-rx/rl').ReinforceOptions<Task>;",
  'src/rl/log/rlLog.ts': "declare const options: import('tinker-rx/rl').ReinforceOptions<Task>;",
  // RxJS has a function of this name.
  'src/operators/flow/partition.ts': "declare const partition: typeof import('tinker-rx/operators').partition;",
  // RxJS has an operator of this name.
  'src/rl/rewards/pairwise.ts': "declare const pairwise: typeof import('tinker-rx/rl').pairwise;",
  'src/sources/fromHttp.ts': "declare const options: import('tinker-rx/operators').TrainPreferencesOptions;",
  'src/sources/fromPreferences.ts': "declare const options: import('tinker-rx/operators').TrainPreferencesOptions;",
  'src/testing/fakeTrainer.ts': 'declare const m: Parameters<Parameters<typeof runMarbles>[0]>[0];',
};

const namesIn = (text: string): Set<string> => new Set(text.match(/[A-Za-z_]\w*\$?/g));

/** The TypeScript blocks in a file's doc comments. Those without imports get the known names they use. */
export function examplesOf(
  file: string,
  known: ReadonlySet<string>,
  text = readFileSync(`${root}${file}`, 'utf8'),
): Snippet[] {
  const lines = text.split('\n');
  return lines.flatMap((opening, at): Snippet[] => {
    if (!/^\s*\* ```ts$/.test(opening)) return [];
    const end = lines.findIndex((line, index) => index > at && /^\s*\* ```$/.test(line));
    const body = lines.slice(at + 1, end).map((line) => line.replace(/^\s*\* ?/, ''));
    const alone = body.some((line) => line.startsWith('import '));
    const own = OVERRIDES[file] ?? '';
    const declared = new Set(Array.from(own.matchAll(/declare const ([\w$]+)/g), ([, name]) => name!));
    const used = [...namesIn(body.join('\n') + own)].filter((name) => known.has(name) && !declared.has(name));
    const before = alone
      ? ''
      : `import { ${used.join(', ')} } from './example-names.js'; ${own} async function example() {`;
    return [
      {
        file,
        line: at + 1,
        source: [before, ...body, alone ? '' : '}'].join('\n'),
        lines: [at + 1, ...body.map((_, index) => at + 2 + index), end + 1],
        runs: false,
        code: '',
        shown: '',
        hidden: '',
        output: undefined,
      },
    ];
  });
}

/** Every source file. */
export const SOURCES: readonly string[] = readdirSync(`${root}src`, { recursive: true })
  .map((name) => `src/${String(name).replaceAll('\\', '/')}`)
  .filter((name) => name.endsWith('.ts'));
