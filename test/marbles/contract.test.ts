import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as operators from '../../src/operators/index.js';
import * as rl from '../../src/rl/index.js';

/** What `tinker-rx/operators` has beside operators. */
const OTHERS = ['backpressure$', 'Gate', 'currentGate', 'withGate', 'constant', 'cosine', 'linear', 'numberBatches'];

/** What `tinker-rx/rl` has beside operators: agents, rewards for groups, the policy, and where to continue. */
const RL_OTHERS = [
  ...['LivePolicy', 'comparison', 'conversation', 'judge', 'pairwise', 'resumeRl', 'rlTool', 'singleTurn', 'taught'],
  ...['toolUse', 'weightedRewards'],
];

/** Operators of other rooms whose tests do not run the contract, and why. */
const WITHOUT: Readonly<Record<string, string>> = {
  resend: 'a part of the client: it waits for the service, and its tests are those of the client',
  likelihood: 'mergeMapWeighted over calls of the service, as evaluate is',
  evaluateInto: 'evaluate, with its records in a file',
  likelihoodInto: 'likelihood, with its records in a file',
  summarize: 'RxJS’s reduce: it emits once, at the end',
};

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
const here = (name: string) => new URL(`./${name}.test.ts`, import.meta.url);

/** The exported functions of a file that give an operator, by their return types. */
const operatorsIn = (text: string) =>
  text
    .split(/^export function /m)
    .slice(1)
    .flatMap((part) => {
      const [, name, type] = /^(\w+)[^]*?\): ([^]*?) \{\n/.exec(part) ?? [];
      return /^(MonoTypeOperatorFunction|OperatorFunction|MarkOperator)</.test(type ?? '') ? [name!] : [];
    });

describe('the contract of operators', () => {
  it('is kept by every operator, in its own tests', () => {
    const without = [...Object.keys(operators), ...Object.keys(rl)]
      .filter((name) => ![...OTHERS, ...RL_OTHERS].includes(name))
      .filter((name) => !existsSync(here(name)) || !readFileSync(here(name), 'utf8').includes('  keepsContract({'));
    expect(without).toStrictEqual([]);
  });

  it('is kept by every function of the package that gives an operator, or it is said why not', () => {
    const source = new URL('../../src/', import.meta.url);
    const found = readdirSync(source, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !/[/\\]internal[/\\]/.test(file))
      .flatMap((file) => operatorsIn(readFileSync(new URL(file.replaceAll('\\', '/'), source), 'utf8')));
    // That the search finds any: these are written in each of the ways there are.
    expect(found).toEqual(expect.arrayContaining(['batch', 'checkpointEvery', 'keepGate', 'reduceMetrics', 'toJsonl']));
    const elsewhere = `${read('./contractElsewhere.test.ts')}${read('../unit/sinks.progressBar.test.ts')}`;
    const kept = (name: string) =>
      existsSync(here(name)) ||
      new RegExp(`describe\\('${name}', \\(\\) => \\{\\n {2}keepsContract\\(`).test(elsewhere);
    expect(found.filter((name) => !kept(name) && !(name in WITHOUT))).toStrictEqual([]);
  });
});
