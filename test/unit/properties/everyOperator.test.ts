import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { findOperators, OPERATORS } from '../../marbles/findOperators.js';

/** Operators of other rooms without a property of their own, and why. */
const WITHOUT: Readonly<Record<string, string>> = {
  retryFailures: 'a part of the client: it waits for the service, and its tests are those of the client',
  ...{ reinforce: 'admit, rollouts, advantages and grpo in a row', distill: 'reinforce with another agent' },
  ...{ grpo: 'the chaos suite, on the ledger of the service', evaluateInto: 'the chaos suite, on its file' },
  ...{ likelihood: 'mergeMapWeighted over calls of the service', likelihoodInto: 'likelihood, into a file' },
  ...{ decisions: 'mergeMapWeighted over decide', decisionsInto: 'decisions, into a file' },
  ...{ summarize: 'RxJS’s reduce: it emits once, at the end', foldDashboard: 'RxJS’s scan' },
  ...{ plainMetrics: 'RxJS’s map' },
  ...{ rlLog: 'metricsLog, with more files', progressBar: 'it draws what it passes; see its own tests' },
};

const folder = new URL('./', import.meta.url);
const texts = readdirSync(folder)
  .filter((file) => file.endsWith('.test.ts'))
  .map((file) => readFileSync(new URL(file, folder), 'utf8'));

/** Whether a property is named after the operator, in a file that calls it. */
const hasProperty = (name: string): boolean =>
  texts.some((text) => new RegExp(`(?:\\bit\\(|\\[)\\s*'[^']*\\b${name}\\b`).test(text) && text.includes(`${name}(`));

it('every operator has a property, or it is said why not', () => {
  const found = new Set([...OPERATORS, ...findOperators()]);
  expect(found.size).toBeGreaterThan(40);
  expect([...found].filter((name) => !hasProperty(name) && !(name in WITHOUT))).toStrictEqual([]);
});

it('no reason is given for what is in tinker-rx/operators, for what has a property, or for what does not exist', () => {
  const others = findOperators().filter((name) => !OPERATORS.includes(name));
  expect(Object.keys(WITHOUT).filter((name) => hasProperty(name) || !others.includes(name))).toStrictEqual([]);
});
