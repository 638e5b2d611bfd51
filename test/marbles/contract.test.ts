import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as rl from '../../src/rl/index.js';
import { findOperators, OPERATORS } from './findOperators.js';

/** What `tinker-rx/rl` has beside operators: agents, rewards for groups, the policy, an error, and where to continue. */
const RL_OTHERS = [
  ...[
    'LivePolicy',
    'RolloutsFailedError',
    'comparison',
    'conversation',
    'judge',
    'mcpTools',
    'pairwise',
    'resumeRl',
    'rlTool',
    'singleTurn',
    'taught',
  ],
  ...['toolUse', 'weightedRewards'],
];

/** Operators of other rooms whose tests do not run the contract, and why. */
const WITHOUT: Readonly<Record<string, string>> = {
  retryFailures: 'a part of the client: it waits for the service, and its tests are those of the client',
  likelihood: 'mergeMapWeighted over calls of the service, as evaluate is',
  decisions: 'mergeMapWeighted over decide',
  decisionsInto: 'decisions, with its records in a file',
  evaluateInto: 'evaluate, with its records in a file',
  likelihoodInto: 'likelihood, with its records in a file',
  summarize: 'RxJS’s reduce: it emits once, at the end',
  plainMetrics: 'RxJS’s map',
};

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
const here = (name: string) => new URL(`./${name}.test.ts`, import.meta.url);

describe('the contract of operators', () => {
  it('is kept by every operator, in its own tests', () => {
    const without = [...OPERATORS, ...Object.keys(rl).filter((name) => !RL_OTHERS.includes(name))].filter(
      (name) => !existsSync(here(name)) || !readFileSync(here(name), 'utf8').includes('  keepsContract({'),
    );
    expect(without).toStrictEqual([]);
  });

  it('is kept by every function of the package that gives an operator, or it is said why not', () => {
    const found = findOperators();
    // That the search finds any: these are written in each of the ways there are.
    expect(found).toEqual(expect.arrayContaining(['batch', 'checkpointEvery', 'keepGate', 'reduceMetrics', 'toJsonl']));
    const elsewhere = `${read('./contractElsewhere.test.ts')}${read('../unit/sinks.progressBar.test.ts')}`;
    const kept = (name: string) =>
      existsSync(here(name)) ||
      new RegExp(`describe\\('${name}', \\(\\) => \\{\\n {2}keepsContract\\(`).test(elsewhere);
    expect(found.filter((name) => !kept(name) && !(name in WITHOUT))).toStrictEqual([]);
  });
});
