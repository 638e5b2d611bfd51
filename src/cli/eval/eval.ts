import { existsSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { lastValueFrom, NEVER, type Observable, take, takeUntil, tap } from 'rxjs';
import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import type { SamplingClient, ServiceClient } from '../../client/index.js';
import type { EvalRecord, EvalSummary } from '../../evals/index.js';
import type { Agent, TaskRow } from '../../rl/index.js';
import { CliError } from '../CliError.js';
import { withService } from '../clients.js';
import { INTERRUPTED, note, type Context } from '../context.js';
import type { Chosen } from '../declare.js';
import type { EVAL } from './command.js';
import { EvalTally } from './EvalTally.js';
import { evalSpending, type SpendingTold } from './evalSpending.js';
import { loadScorers } from './loadScorers.js';
import { printSummary } from './printSummary.js';
import { modelOf } from '../modelOf.js';
import { loadModule } from '../loadModule.js';
import { rowsOf } from '../run/grpo/rowsOf.js';
import { count, shellWord } from '../output/format.js';
import { openSampler } from '../sample/openSampler.js';
import { waitFor } from '../terminal/waitFor.js';
import { countRows } from '../run/countRows.js';

/** `tasks` is from a file of options, where the argument is absent. */
type EvalCommandOptions = Chosen<typeof EVAL> & { readonly tasks?: string };

/** Evaluates a model over a file of tasks, into a result file. */
export default async function evaluateFile(
  context: Context,
  options: EvalCommandOptions,
  argument?: string,
): Promise<number> {
  const tasks = argument ?? options.tasks;
  const { model, scorer = [], judge, rollout, likelihood = false, labels } = options;
  if (tasks === undefined) throw new CliError('No tasks', { details: 'Give a file of tasks.', exitCode: 2 });
  if (model === undefined) throw new CliError('No model', { details: 'Give --model.', exitCode: 2 });
  if (scorer.length === 0 && judge === undefined && rollout === undefined && !likelihood && labels === undefined) {
    throw new CliError('No scorer', {
      details:
        'Give --scorer exact, contains, numeric, json-schema=<file> or a module; or --judge; --likelihood; --labels a,b,c.',
      exitCode: 2,
    });
  }
  const out = outputFor(context, options, tasks);
  let interrupted = false;
  const summary = await withService(context, async (service) => {
    const { name } = await modelOf(model);
    const found = await run(context, service, { ...options, model: name, tasks, out }, () => (interrupted = true));
    if (interrupted) await service.destroy();
    return found;
  });
  const again = `tinker-rx eval … --out ${shellWord(out)} --resume`;
  if (interrupted) {
    note(context, `Interrupted after ${count(summary.examples, 'example')}. The rest: ${again}`);
    return INTERRUPTED;
  }
  printSummary(context, summary, out);
  if (summary.stopped !== undefined)
    note(context, `Stopped: ${summary.stopped}. The rest, with a larger budget: ${again}`);
  if (summary.unscored < summary.examples) return 0;
  note(context, `No example has a score. Ask again what failed: ${again} --retry-failures`);
  return 1;
}

type Plan = EvalCommandOptions & { readonly model: string; readonly tasks: string; readonly out: string };

async function run(
  context: Context,
  service: ServiceClient,
  plan: Plan,
  onInterrupt: () => void,
): Promise<EvalSummary & SpendingTold> {
  const { sampler, renderer } = await openSampler(context, service, plan);
  const all = await rowsOf(plan.tasks);
  const rows = plan.limit === undefined ? all : all.pipe(take(plan.limit));
  const total = await countRows(context, plan.tasks, rows, plan.likelihood === true ? 'conversation' : 'task');
  const { summarize } = await import('../../evals/index.js');
  const tally = new EvalTally(context.now, total);
  const spending = await evalSpending(context, service, plan, await sampler.getBaseModel());
  const admitted = rows.pipe(spending.within());
  const records = await recordsOf(context, service, plan, { sampler, renderer, rows: admitted });
  const summed = records.pipe(
    tap((record) => tally.take(record)),
    takeUntil(context.interrupted$.pipe(tap(onInterrupt))),
    summarize({ passAt: plan.passAt }),
  );
  // The stream itself listens for Ctrl-C: what is in flight is cancelled, not failed.
  const quiet = { ...context, interrupted$: NEVER };
  const status = () => tally.status(spending.text());
  const summary = await waitFor(quiet, status, lastValueFrom(summed), service.events$, { patient: true });
  return { ...summary, ...spending.told() };
}

interface Parts {
  readonly sampler: SamplingClient;
  readonly renderer: Renderer;
  readonly rows: Observable<TaskRow>;
}

async function recordsOf(
  context: Context,
  service: ServiceClient,
  plan: Plan,
  { sampler, renderer, rows }: Parts,
): Promise<Observable<EvalRecord>> {
  const { model, out, concurrency, retries, seed, passAt, retryFailures = false } = plan;
  const { answers, decisionsInto, evaluateInto, likelihoodInto } = await import('../../evals/index.js');
  const shared = { tasks: basename(plan.tasks), model, sampler, renderer, concurrency, retryFailures };
  if (plan.likelihood === true) return rows.pipe(likelihoodInto(out, shared));
  if (plan.labels !== undefined) {
    const labels = plan.labels.split(',').map((label) => label.trim());
    return rows.pipe(
      decisionsInto<TaskRow>(out, { ...shared, labels, ...(plan.system === undefined ? {} : { system: plan.system }) }),
    );
  }
  const scorers = await loadScorers(context, service, plan);
  const agent = plan.rollout === undefined ? answers<TaskRow>({ renderer }) : await loadAgent(plan.rollout, renderer);
  const { numSamples: samples, maxTokens, temperature, topP, topK } = plan;
  const samplingParams = { maxTokens, temperature, topP, topK };
  return rows.pipe(
    evaluateInto(out, agent, { ...shared, scorers, samples, samplingParams, seed, onFailure: { retries }, passAt }),
  );
}

async function loadAgent(file: string, renderer: Renderer): Promise<Agent<TaskRow>> {
  const agent = (await loadModule(file))['agent'];
  if (typeof agent === 'function') return (agent as (renderer: Renderer) => Agent<TaskRow>)(renderer);
  throw new CliError(`${file} exports no agent`, { details: 'Export one: export const agent = (renderer) => …' });
}

/** The result file: a new one, or with `--resume` one that an earlier command left. */
function outputFor({ now }: Context, { out, resume = false }: EvalCommandOptions, tasks: string): string {
  if (out === undefined) {
    if (resume) throw new CliError('--resume without --out', { exitCode: 2 });
    const time = new Date(now()).toISOString().slice(0, 19).replace(/[:T]/g, '-');
    return `${basename(tasks).replace(/\.[^.]*$/, '')}-${time}.eval.jsonl`;
  }
  if (!resume && existsSync(out) && statSync(out).size > 0) {
    throw new CliError(`${out} exists already`, {
      details: `Add what is missing with: --out ${shellWord(out)} --resume\nOr choose another file.`,
    });
  }
  return out;
}
