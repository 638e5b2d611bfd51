import { readFileSync } from 'node:fs';
import { root, type Snippet } from './snippets.js';

/** The names that the table uses without saying where they come from. */
const NAMES = `
import { APIStatusError, ModelInput, RestClient, SamplingClient, ServiceClient } from 'tinker-rx';
import type { CustomLossFn, Datum, ForwardBackwardOutput, SampleResponse, SamplingParams, TinkerFuture, TrainingClient } from 'tinker-rx';
import { train, type TrainOptions } from 'tinker-rx/operators';
import type { Tokenizer } from 'tinker-rx/chat';
import type { Observable } from 'rxjs';
declare const [service, training, sampling]: [ServiceClient, TrainingClient, SamplingClient];
declare const [baseModel, path, h]: [string, string, string];
declare const [tokens, weights, target_tokens]: [number[], number[], number[]];
declare const [modelInput, prompt]: [ModelInput, ModelInput];
declare const [data, loss, samplingParams]: [Datum[], CustomLossFn, SamplingParams];
declare const future: TinkerFuture<ForwardBackwardOutput>;
declare const result: ForwardBackwardOutput & SampleResponse;
declare const tokenizer: Tokenizer;
declare const [batches, options]: [Observable<Datum[]>, TrainOptions];
`.trim();

/** What the table of docs/from-python.md says is ours, as a module: every cell a statement. */
export function pythonTable(): Snippet {
  const lines = readFileSync(`${root}docs/from-python.md`, 'utf8').split('\n');
  const start = lines.indexOf('| Python | here |');
  const source = NAMES.split('\n');
  const numbers = source.map(() => start + 1);
  for (let at = start + 2; lines[at]?.startsWith('|'); at++) {
    const ours = lines[at]!.split(' | ').at(-1)!;
    for (const [, code] of ours.matchAll(/`([^`]+)`/g)) {
      source.push(asStatement(code!));
      numbers.push(at + 1);
    }
  }
  return {
    file: 'docs/from-python.md',
    line: start + 1,
    source: source.join('\n'),
    lines: numbers,
    runs: false,
    code: '',
    shown: '',
    hidden: '',
    output: undefined,
  };
}

function asStatement(code: string): string {
  // What is imported is imported above; here it only has to be there.
  if (code.startsWith('import ')) return `void [${/\{(.+)\}/.exec(code)![1]}];`;
  if (code.startsWith('const ')) return `{ ${code} }`;
  if (code.startsWith('catch ')) return `try {} ${code}`;
  return `void (${code.replace(/;$/, '')});`;
}
