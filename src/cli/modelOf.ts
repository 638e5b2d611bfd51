import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { firstValueFrom } from 'rxjs';
import { isCheckpointPath } from '../wire/tinkerPath.js';
import { CliError } from './CliError.js';
import { MODEL_HELP } from './declare.js';

/** What an argument that names a model means. */
export interface NamedModel {
  /** A base model, or the `tinker://` path of a checkpoint. */
  readonly name: string;
  /** The same, as clients take it. */
  readonly source: { readonly modelPath: string } | { readonly baseModel: string };
}

/**
 * Which model words mean: a base model, a checkpoint, or a run by its folder. `runs/first` is its newest checkpoint, `runs/first@40` that
 * after step 40. `wants` is which path of a run's checkpoint: to sample from, or to train and download. @throws CliError
 */
export async function modelOf(text: string, wants: 'samplerPath' | 'statePath' = 'samplerPath'): Promise<NamedModel> {
  const name = isCheckpointPath(text) ? text : await pathInRun(text, wants);
  if (name !== undefined) return { name, source: { modelPath: name } };
  if (/^[./~]/.test(text)) throw new CliError(`${text} holds no run`, { details: 'Give the folder of a run (--log).' });
  return { name: text, source: { baseModel: text } };
}

/** The model of a command that takes it as an argument or as a flag. @throws CliError unless it is given once */
export function askedModel(argument: string | undefined, flag: string | undefined): string {
  const [model, more] = [argument, flag].filter((each) => each !== undefined);
  if (model !== undefined && more === undefined) return model;
  throw new CliError(model === undefined ? 'No model' : 'Give the model once', {
    details: `Give it as the argument or with --model: ${MODEL_HELP}.`,
    exitCode: 2,
  });
}

/** Whether words name the folder of a run, at a step or not. */
export const isRun = (text: string): boolean => runIn(text) !== undefined;

function runIn(text: string): { readonly folder: string; readonly step: number | undefined } | undefined {
  const [, before, step] = /^(.+)@(\d+)$/.exec(text) ?? [];
  const places = [
    { folder: text, step: undefined },
    ...(before === undefined ? [] : [{ folder: before, step: Number(step) }]),
  ];
  // A model on disk has a config.json, too.
  return places.find(({ folder }) =>
    ['checkpoints.jsonl', 'metrics.jsonl'].some((file) => existsSync(join(folder, file))),
  );
}

async function pathInRun(text: string, wants: 'samplerPath' | 'statePath'): Promise<string | undefined> {
  const run = runIn(text);
  if (run === undefined) return undefined;
  const { loggedCheckpoints } = await import('../sources/reading/usableCheckpoints.js');
  const saved = (await firstValueFrom(loggedCheckpoints(run.folder))).filter((each) => each[wants] !== undefined);
  const found = run.step === undefined ? saved.at(-1) : saved.findLast(({ steps }) => steps === run.step);
  if (found !== undefined) return found[wants];
  const kind = wants === 'samplerPath' ? 'to sample from' : 'to train or download';
  if (saved.length === 0) throw new CliError(`${run.folder} has no checkpoint ${kind}`);
  throw new CliError(`${run.folder} has no checkpoint ${kind} after step ${run.step}`, {
    details: `It has them after steps ${saved.map(({ steps }) => steps).join(', ')}.`,
  });
}
