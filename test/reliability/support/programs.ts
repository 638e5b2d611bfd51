import { concat, defer, firstValueFrom, from, ignoreElements, map, mergeMap, tap, type Observable } from 'rxjs';
import { join } from 'node:path';
import { ModelInput, type Datum, type ServiceClient, type TrainingClient } from '../../../src/index.js';
import { answers, evaluateInto, fromEval } from '../../../src/evals/index.js';
import { dpo } from '../../../src/losses/index.js';
import {
  batch,
  checkpointEvery,
  continueFrom,
  linear,
  sampleFrom,
  toPairs,
  train,
  trainPreferences,
} from '../../../src/operators/index.js';
import { reinforce, resumeRl, rlLog, singleTurn } from '../../../src/rl/index.js';
import { metricsLog } from '../../../src/sinks/index.js';
import { fromArray, resumeFrom, toPreference } from '../../../src/sources/index.js';

const BASE = { baseModel: 'tinker-rx/tiny', rank: 4, seed: 1 } as const;

/** A run as users write it: it continues where the run in the folder stopped. Notes for later tries are kept in `kept`. */
export type Program = (service: ServiceClient, folder: string, kept: Map<string, string>) => Observable<unknown>;

const toDatum = (text: string): Datum => {
  const tokens = Array.from(Buffer.from(text));
  return {
    modelInput: ModelInput.fromInts(tokens.slice(0, -1)),
    lossFnInputs: { target_tokens: tokens.slice(1), weights: tokens.slice(1).map(() => 1) },
  };
};

const trainerFor = async (service: ServiceClient, statePath: string | undefined): Promise<TrainingClient> =>
  statePath === undefined
    ? service.createLoraTrainingClient(BASE)
    : service.createTrainingClientFromStateWithOptimizer(statePath);

/** Supervised steps, submitted ahead, with exact checkpoints. */
export const supervised =
  (steps: number): Program =>
  (service, folder) =>
    defer(async () => {
      const resume = await firstValueFrom(resumeFrom(folder));
      const trainer = await trainerFor(service, resume.checkpoint?.statePath);
      return fromArray(Array.from({ length: steps * 2 }, (_, row) => toDatum(`row ${row} says ${row * 7}`))).pipe(
        batch({ size: 2 }),
        continueFrom(resume),
        checkpointEvery({ steps: 5, atEnd: true }),
        train(trainer, { loss: 'cross_entropy', adam: { learningRate: linear(1e-2, { steps: 2 * steps }) }, ahead: 3 }),
        metricsLog(folder),
      );
    }).pipe(mergeMap((run) => run));

/** Synchronous GRPO: groups of seeded rollouts, a new sampler after each step. */
export const grpo =
  (steps: number): Program =>
  (service, folder) =>
    defer(async () => {
      const { checkpoint, rl } = await firstValueFrom(resumeRl(folder));
      const trainer = await trainerFor(service, checkpoint?.statePath);
      const agent = singleTurn<string>({
        renderer: await trainer.getRenderer(),
        prompt: (word) => `Say ${word}`,
        // Most answers differ in length, so most groups teach something.
        reward: ({ turn }) => -turn.sequence.tokens.length,
        samplingParams: { maxTokens: 8 },
      });
      return from(Array.from({ length: steps * 2 }, (_, index) => `word ${index}`)).pipe(
        reinforce(trainer, agent, {
          ...{ group: 4, groupsPerBatch: 2, maxStepsOffPolicy: 0, seed: 7, adam: { learningRate: 1e-3 } },
          ...{ checkpoint: { steps: 2, atEnd: true }, resume: rl },
        }),
        rlLog(folder),
      );
    }).pipe(mergeMap((run) => run));

/** Preferences by DPO, against the weights of the start. */
export const preferences =
  (steps: number): Program =>
  (service, folder, kept) =>
    defer(async () => {
      const resume = await firstValueFrom(resumeFrom(folder));
      const trainer = await trainerFor(service, resume.checkpoint?.statePath);
      if (!kept.has('reference')) kept.set('reference', (await trainer.saveWeightsForSampler('reference')).path);
      const reference = await service.createSamplingClient({ modelPath: kept.get('reference')! });
      const rows = Array.from({ length: steps * 2 }, (_, row) =>
        toPreference({ prompt: `Is ${row} even?`, chosen: row % 2 === 0 ? 'yes' : 'no', rejected: 'perhaps' }),
      );
      return fromArray(rows).pipe(
        toPairs(await trainer.getRenderer()),
        batch({ size: 2 }),
        map((pairs) => pairs.flat()),
        continueFrom(resume),
        checkpointEvery({ steps: 3, atEnd: true }),
        trainPreferences(trainer, {
          loss: dpo({ beta: 0.5 }),
          reference,
          adam: { learningRate: linear(1e-2, { steps: 2 * steps }) },
        }),
        metricsLog(folder),
      );
    }).pipe(mergeMap((run) => run));

/** Samples with seeds, every fifth of which has a token that the model does not know. What each gave is kept under its number. */
export const samples =
  (count: number): Program =>
  (service, _folder, kept) =>
    defer(async () => {
      const sampler = await service.createSamplingClient({ baseModel: 'tinker-rx/tiny' });
      return fromArray(Array.from({ length: count }, (_, index) => index)).pipe(
        sampleFrom(sampler, {
          settle: true,
          request: (index) => ({
            prompt: ModelInput.fromInts(index % 5 === 4 ? [99_999] : Array.from(Buffer.from(`prompt ${index}`))),
            samplingParams: { maxTokens: 6, seed: index },
          }),
        }),
        map((outcome) => {
          if (outcome._tag === 'Left') kept.set(String(outcome.left.item), outcome.left.error.message);
          else kept.set(String(outcome.right.item), outcome.right.response.sequences[0]!.tokens.join(' '));
        }),
        ignoreElements(),
      );
    }).pipe(mergeMap((run) => run));

/** An evaluation into a result file, four examples at a time. What its file holds in the end is kept: seeds, answers and scores of each example. */
export const evaluationOf =
  (examples: number): Program =>
  (service, folder, kept) =>
    defer(async () => {
      const sampler = await service.createSamplingClient({ baseModel: 'tinker-rx/tiny' });
      const renderer = await sampler.getRenderer();
      const file = join(folder, 'facts.eval.jsonl');
      kept.clear();
      const tasks = Array.from({ length: examples }, (_, index) => ({
        id: `task ${index}`,
        prompt: `What is ${index}?`,
      }));
      return concat(
        fromArray(tasks).pipe(
          evaluateInto(file, answers({ renderer }), {
            ...{ sampler, renderer, samples: 2, concurrency: 8, samplingParams: { maxTokens: 6 } },
            scorers: { length: ({ output }) => output.length },
            // An answer asked again has another seed: here it must be the client that bears the faults.
            onFailure: 'skip',
            retryFailures: true,
          }),
          ignoreElements(),
        ),
        fromEval(file).pipe(
          tap(({ id, samples: told, failures: [failure] }) => {
            // Asked again by the next try.
            if (failure !== undefined) throw new Error(failure.message);
            if (kept.has(id)) throw new Error(`${id} is in the file twice`);
            kept.set(id, JSON.stringify(told.map(({ seed, output, score }) => ({ seed, output, score }))));
          }),
          ignoreElements(),
        ),
      );
    }).pipe(mergeMap((run) => run));
