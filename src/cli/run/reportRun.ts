import type { Cost } from '../../evals/index.js';
import { INTERRUPTED, note, type Context } from '../context.js';
import { shellWord } from '../output/format.js';
import { printProperties } from '../output/print.js';
import type { Outcome } from './followRun.js';
import { resumeCommand } from './planRun.js';
import { costText } from './Spending.js';

/** Says what a run came to, and what to do next. */
export function reportRun(
  context: Context,
  command: string,
  folder: string,
  { last, told, fewer, checkpoint, interrupted, cost, spent, largerBudget }: Outcome,
): number {
  const { statePath, samplerPath, steps = 0 } = checkpoint ?? {};
  if (interrupted) {
    note(
      context,
      `Stopped; ${steps === 0 ? 'nothing is saved yet' : `saved after step ${steps}`}. Continue with: ${resumeCommand(command, folder)}`,
    );
    return INTERRUPTED;
  }
  if (last === undefined && spent === undefined)
    note(context, `The run was finished already. More steps: ${resumeCommand(command, folder, '--steps N')}`);
  const known = told.flatMap(([label, value]) => (value === undefined ? [] : [[label, value] as const]));
  printProperties(
    context,
    [
      ['Steps', String(steps)],
      ...known.map(([label, value]) => [label, value.toFixed(4)] as const),
      ['Cost', cost === undefined || cost.tokens === 0 ? undefined : costLine(cost)],
      ['Stopped', spent?.reason],
      ['Log', folder],
      ['Checkpoint', statePath],
      ['Sampler', samplerPath],
    ],
    () => ({
      steps,
      ...Object.fromEntries(known.map(([label, value]) => [label.toLowerCase().replaceAll(' ', '_'), value])),
      cost,
      stopped: spent?.reason,
      log: folder,
      state_path: statePath ?? null,
      sampler_path: samplerPath ?? null,
    }),
  );
  if (fewer !== undefined) note(context, `Fewer steps than there could be: ${fewer}.`);
  if (spent !== undefined)
    note(context, `Continue with a larger budget: ${resumeCommand(command, folder, largerBudget)}`);
  note(context, `Its curves: tinker-rx dashboard --log ${shellWord(folder)}`);
  if (samplerPath !== undefined) note(context, `Talk to it: tinker-rx chat ${shellWord(folder)}`);
  return 0;
}

/** What a run has cost, and what is left out of it. */
function costLine(cost: Cost): string {
  const { usd, unpriced, pricesAsOf } = cost;
  const dated = usd === undefined ? '' : `, prices of ${pricesAsOf}`;
  return `${costText(cost)}${dated}${unpriced.length === 0 ? '' : `; no price for ${unpriced.join(', ')}`}`;
}
