import { CliError } from '../CliError.js';
import { withAdmin } from '../clients.js';
import type { Context } from '../context.js';
import { printTable } from '../output/print.js';

const HOUR_MS = 3_600_000;
/** The service reports at most two weeks at once. */
const LONGEST_MS = 14 * 24 * HOUR_MS;

/** Holds what a run counted against what the service billed for its sessions. */
export default async function billingReconcile(context: Context, _options: object, folder: string): Promise<void> {
  const { readSpent, reconcileCost } = await import('../../evals/index.js');
  const spent = readSpent(folder);
  const { lines } = spent;
  if (lines.length === 0) {
    throw new CliError(`${folder} holds no costs`, {
      details: 'train, grpo, dpo and distill keep them as cost.jsonl in the folder of the run.',
    });
  }
  const from = Math.floor(Math.min(...lines.map(({ startedAtMs }) => startedAtMs)) / HOUR_MS) * HOUR_MS;
  const to = Math.ceil((Math.max(...lines.map(({ endedAtMs }) => endedAtMs)) + 1) / HOUR_MS) * HOUR_MS;
  if (to - from > LONGEST_MS)
    throw new CliError('The run took longer than the two weeks that the service reports at once');
  const time = (ms: number) => new Date(ms).toISOString();
  const usage = await withAdmin(context, 'asking for usage', (admin) =>
    admin.getBillingUsage({ startingOn: time(from), endingBefore: time(to) }),
  );
  const found = reconcileCost(
    spent,
    usage,
    lines.map(({ sessionId }) => sessionId),
  );
  const { counted, billed, difference, agrees } = found;
  const whole = (value: number) => value.toLocaleString('en-US');
  const dollars = (value: number | undefined) => (value === undefined ? 'not told' : `$${value.toFixed(4)}`);
  const tokens = (['prompt', 'cached', 'sampled', 'trained'] as const).map((kind) => [
    `${kind} tokens`,
    whole(counted[kind]),
    whole(billed[kind]),
    whole(difference[kind]),
  ]);
  printTable(
    context,
    {
      title: agrees ? 'Counted and billed tokens agree' : 'Counted and billed tokens differ',
      columns: ['', 'counted', 'billed', 'difference'],
      rows: [...tokens, ['cost', dollars(counted.usd), dollars(billed.usd), dollars(difference.usd)]],
    },
    () => ({ ...found, cost_data_through: usage.costDataThrough ?? null }),
  );
}
