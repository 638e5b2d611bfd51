import { readdirSync, readFileSync } from 'node:fs';
import * as operators from '../../src/operators/index.js';

/** What `tinker-rx/operators` has beside operators. */
const OTHERS = [
  'backpressure$',
  'findBottleneck',
  'flow$',
  'Gate',
  'TokenBucket',
  'currentGate',
  'withGate',
  'constant',
  'cosine',
  'linear',
  'numberBatches',
  'rateOnPlateau',
];

/** The operators of `tinker-rx/operators`. */
export const OPERATORS: readonly string[] = Object.keys(operators).filter((name) => !OTHERS.includes(name));

/** The exported functions of a file that give an operator, by their return types. */
const operatorsIn = (text: string): string[] =>
  text
    .split(/^export function /m)
    .slice(1)
    .flatMap((part) => {
      const [, name, type] = /^(\w+)[^]*?\): ([^]*?) \{\n/.exec(part) ?? [];
      return /^(MonoTypeOperatorFunction|OperatorFunction|MarkOperator)</.test(type ?? '') ? [name!] : [];
    });

/** Every function of the package that gives an operator, in whichever room. */
export function findOperators(): readonly string[] {
  const source = new URL('../../src/', import.meta.url);
  return readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !/[/\\]internal[/\\]/.test(file))
    .flatMap((file) => operatorsIn(readFileSync(new URL(file.replaceAll('\\', '/'), source), 'utf8')));
}
