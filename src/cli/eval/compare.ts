import { existsSync } from 'node:fs';
import { lastValueFrom, toArray } from 'rxjs';
import type { EvalComparison, EvalRecord } from '../../evals/index.js';
import { CliError } from '../CliError.js';
import { note, type Context } from '../context.js';
import type { Chosen } from '../declare.js';
import type { COMPARE } from './command.js';
import { sideBySide } from './sideBySide.js';
import { told } from './printSummary.js';
import { printJson, printProperties } from '../output/print.js';
import { styleFor } from '../terminal/style.js';

/** Compares two result files example by example. */
export default async function evalCompare(
  context: Context,
  { failIfWorse = false, confidence, worst }: Chosen<typeof COMPARE>,
  before: string,
  after: string,
): Promise<number> {
  if (!(confidence > 0 && confidence < 1)) throw new CliError('--confidence must be between 0 and 1', { exitCode: 2 });
  const { compareEvals, protocolDifferences } = await import('../../evals/index.js');
  const [old, fresh] = [await readResults(before), await readResults(after)];
  const found = compareEvals(old.records, fresh.records, { confidence });
  if (found.examples === 0) throw new CliError('The two files have no example in common that has a score in both');
  for (const { name, before: was, after: is } of protocolDifferences(old.protocol, fresh.protocol))
    note(context, `Warning: ${name} differs: ${was} before, ${is} after`);
  const shown = found.regressions.slice(0, worst);
  const percent = `${(100 * confidence).toFixed(confidence > 0.99 ? 1 : 0)} %`;
  if (context.format === 'json') printJson(context, { ...found, regressions: shown, improvements: undefined });
  else {
    print(context, found, percent);
    const style = styleFor(context.stdout);
    for (const pair of shown) context.stdout.write(sideBySide(pair, context.stdout.columns ?? 100, style));
  }
  if (!failIfWorse) return 0;
  const worse = whyWorse(found, percent);
  if (worse === undefined) return 0;
  note(context, `--fail-if-worse: ${worse}`);
  return 1;
}

/** Why the second is taken for worse; undefined if it is not. */
function whyWorse(found: EvalComparison, percent: string): string | undefined {
  const { verdict, verdictWithLost, lost, difference } = found;
  if (verdict === 'worse') return 'the second is worse';
  if (verdictWithLost === 'worse')
    return `${lost} examples have a score in the first file only; with the lowest score for each, the second is worse`;
  if (verdict === 'too-few' && difference.mean < 0)
    return `the score fell, and there are ${verdictText(found, percent)}`;
  return undefined;
}

function verdictText({ verdict, needed }: EvalComparison, percent: string): string {
  if (verdict === 'too-few') return `too few examples: at least ${needed} for ${percent}`;
  return verdict === 'same' ? 'no difference found' : verdict;
}

function print(context: Context, found: EvalComparison, percent: string): void {
  const { examples, improved, regressed, same, errored, lost, onlyBefore, onlyAfter, difference, pValue, test } = found;
  const signed = (value: number) => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`;
  const ends = Number.isFinite(difference.low) ? ` (${signed(difference.low)} to ${signed(difference.high)})` : '';
  printProperties(
    context,
    [
      ['Examples', `${examples} compared: ${improved} improved, ${regressed} regressed, ${same} the same`],
      [
        'Errored',
        errored === 0 ? undefined : `${errored} without a score in one of the two, ${lost} of them only in the second`,
      ],
      ['Alone', onlyBefore + onlyAfter === 0 ? undefined : `${onlyBefore} only before, ${onlyAfter} only after`],
      ['Before', told(found.before)],
      ['After', told(found.after)],
      ['Difference', `${signed(difference.mean)}${ends}, ${percent} confidence`],
      ['Test', `${test === 'mcnemar' ? "McNemar's exact test" : 'paired t test'}, p = ${pValue.toPrecision(3)}`],
      ['Verdict', verdictText(found, percent)],
    ],
    () => found,
  );
}

async function readResults(path: string) {
  if (!existsSync(path)) throw new CliError(`${path}: no such file`);
  const { fromEval, readProtocol } = await import('../../evals/index.js');
  const protocol = readProtocol(path);
  const records: readonly EvalRecord[] = await lastValueFrom(fromEval(path).pipe(toArray()));
  return { protocol, records };
}
