// Pipelines as users write them, without type arguments and casts: that this file compiles, in strict mode, is the test.
import { readFileSync } from 'node:fs';
import type { Either } from 'fp-ts/lib/Either.js';
import { defer, filter, from, map, NEVER, type Observable, of, take, tap } from 'rxjs';
import { describe, expect, expectTypeOf, it } from 'vitest';
import type { ModelInput, SamplingClient, TinkerError, TrainingClient } from '../../src/index.js';
import type { Renderer } from '../../src/chat/index.js';
import {
  anomaly,
  batch,
  batchByWeight,
  broadcast,
  checkpointEvery,
  concatMapAhead,
  continueFrom,
  decide,
  evaluateEvery,
  interleave,
  keepGate,
  linear,
  markBatches,
  mergeMapWeighted,
  movingMean,
  named,
  partition,
  plateau,
  rateLimit,
  rateOnPlateau,
  reduceMetrics,
  repeatEpochs,
  retryBackoff,
  type Sampled,
  type SampleFailure,
  sampleFrom,
  settle,
  shuffle,
  slope,
  type Step,
  takeUntilIdle,
  toDatums,
  toDecisions,
  tokensPerSecond,
  toPairs,
  train,
  trainUntil,
  type Trainable,
  trainPreferences,
  unsettle,
  withReference,
  withSoftTargets,
} from '../../src/operators/index.js';
import { fromConversations, fromJsonl, fromPreferences } from '../../src/sources/index.js';
import type { Datum } from '../../src/wire/datum.js';

interface World {
  readonly trainer: TrainingClient;
  readonly renderer: Renderer;
  readonly sampler: SamplingClient;
  readonly heldOut: readonly Datum[];
  readonly prompts: Observable<ModelInput>;
  readonly texts: Observable<string>;
  readonly batches: Observable<readonly Datum[]>;
}

const loss = 'cross_entropy';
const score = (sampler: SamplingClient) => of({ accuracy: sampler === undefined ? 0 : 1 });

/** Eleven operators: RxJS's `pipe` is typed for nine, a second `.pipe` goes on. */
const supervised = ({ trainer, renderer, heldOut }: World) =>
  interleave([{ source: fromConversations('a.jsonl') }, { source: fromConversations('b.jsonl'), weight: 2 }])
    .pipe(
      keepGate(),
      repeatEpochs({ epochs: 3, each: (rows, epoch) => rows.pipe(shuffle({ window: 64, seed: epoch })) }),
      toDatums(renderer),
      filter(({ modelInput }) => modelInput.length < 4096),
      batch({ size: 32 }),
      continueFrom({ batches: 0 }),
      checkpointEvery({ steps: 20, atEnd: true }),
      evaluateEvery({ steps: 50, evaluate: (sampler) => score(sampler) }),
    )
    .pipe(
      evaluateEvery({ steps: 20, validation: heldOut }),
      markBatches((client: TrainingClient, { steps, start }) => {
        if (steps === 1) start(client.saveState('first'));
      }),
      train(trainer, { loss, adam: { learningRate: linear(1e-4, { steps: 10 }) } }),
      tokensPerSecond(),
      tap((step) => expectTypeOf(step.tokensPerSecond).toBeNumber()),
      reduceMetrics({ window: 10 }),
      takeUntilIdle({ idleMs: 60_000 }),
      map(({ value, windowed }) => [value.index, windowed['loss']?.mean] as const),
    );

/** Marks in every order, from every kind of batch. */
const orders = ({ trainer, batches, heldOut, sampler }: World) => [
  batches.pipe(checkpointEvery({ steps: 1 }), evaluateEvery({ steps: 1, evaluate: score }), train(trainer, { loss })),
  batches.pipe(evaluateEvery({ steps: 1, evaluate: score }), checkpointEvery({ steps: 1 }), train(trainer, { loss })),
  batches.pipe(checkpointEvery({ steps: 1, atEnd: true }), trainUntil(NEVER, trainer, { loss })),
  batches.pipe(
    continueFrom({ batches: 1 }),
    evaluateEvery({ steps: 1, evaluate: score }),
    checkpointEvery({ steps: 1 }),
    train(trainer, { loss }),
  ),
  batches.pipe(
    evaluateEvery({ steps: 1, validation: heldOut }),
    withSoftTargets(sampler, { topK: 4 }),
    checkpointEvery({ steps: 1 }),
    train(trainer, { loss }),
  ),
  batches.pipe(
    checkpointEvery({ steps: 1 }),
    withReference(sampler),
    evaluateEvery({ steps: 1, evaluate: score }),
    trainPreferences(trainer, { reference: sampler }),
  ),
];

const preferences = ({ trainer, renderer, sampler }: World) =>
  fromPreferences('pairs.jsonl').pipe(
    toPairs(renderer),
    batch({ size: 8 }),
    map((pairs) => pairs.flat()),
    checkpointEvery({ steps: 10 }),
    trainPreferences(trainer, { reference: sampler }),
    take(10),
  );

const sampling = ({ sampler, prompts, texts, renderer }: World) => ({
  plain: prompts.pipe(sampleFrom(sampler, { numSamples: 4 })),
  items: prompts.pipe(
    map((prompt, id) => ({ id, prompt })),
    sampleFrom(of(sampler)),
    map(({ item }) => item.id),
  ),
  settled: prompts.pipe(sampleFrom(sampler, { settle: true })),
  asked: texts.pipe(
    sampleFrom(sampler, {
      request: (content) => ({ prompt: renderer.buildGenerationPrompt([{ role: 'user', content }]) }),
      settle: true,
    }),
  ),
});

const blocks = ({ texts }: World) =>
  fromJsonl<{ readonly text: string }>('rows.jsonl').pipe(
    map(({ text }) => text),
    batchByWeight({ weight: ({ length }) => length, limit: 100 }),
    concatMapAhead((rows) => from(rows), { ahead: 2 }),
    mergeMapWeighted((row) => defer(() => of(row.length)).pipe(retryBackoff(), settle()), {
      weight: ({ length }) => length,
      budget: texts.pipe(map(({ length }) => length)),
    }),
  );

const fanned = ({ trainer, batches, prompts, sampler }: World) => ({
  both: batches.pipe(
    broadcast({
      train: (each) => each.pipe(train(trainer, { loss })),
      count: (each) => each.pipe(map(({ length }) => length)),
    }),
  ),
  swept: batches.pipe(
    partition(({ length }) => (length > 8 ? 'large' : 'small'), {
      large: (each) => each.pipe(named('large', train(trainer, { loss }))),
      small: (each) => each.pipe(train(trainer, { loss })),
    }),
    map(({ value }) => value.loss),
  ),
  answered: prompts.pipe(rateLimit({ limit: 5, perMs: 1000 }), sampleFrom(sampler, { settle: true }), unsettle('skip')),
});

const watched = ({ trainer, batches }: World) => {
  const rate = rateOnPlateau(1e-4, { patience: 3 });
  const steps = batches.pipe(train(trainer, { loss, adam: { learningRate: rate.learningRate } }), rate.watch);
  return {
    means: steps.pipe(movingMean({ metric: 'loss' })),
    slopes: steps.pipe(slope({ window: 4 })),
    odd: steps.pipe(
      anomaly({ sigmas: 4 }),
      map(({ value }) => value.index),
    ),
    stale: steps.pipe(plateau({ patience: 3 })),
  };
};

const decided = ({ texts, sampler, renderer }: World) => ({
  asked: texts.pipe(
    decide(sampler, { renderer, labels: ['yes', 'no'] }),
    map(({ probabilities }) => probabilities),
  ),
  taught: fromJsonl('rows.jsonl').pipe(toDecisions({ renderer, labels: ['yes', 'no'] })),
});

const refused = ({ trainer, sampler, batches, texts }: World) => [
  // @ts-expect-error: a string is no prompt
  texts.pipe(sampleFrom(sampler)),
  // @ts-expect-error: nor is it where failures are settled
  texts.pipe(sampleFrom(sampler, { settle: true })),
  // @ts-expect-error: one optimizer
  batches.pipe(train(trainer, { loss, adam: {}, optimizer: { type: 'dimuon' } })),
  // @ts-expect-error: many batches to a step, or many steps to a batch
  batches.pipe(train(trainer, { loss, accumulate: 2, substeps: 2 })),
  // @ts-expect-error: a trainer that cannot save
  batches.pipe(checkpointEvery({ steps: 1 }), train(trainer as Trainable, { loss })),
  batches.pipe(
    // @ts-expect-error: an evaluation of another sampler than the trainer's
    evaluateEvery({
      steps: 1,
      evaluate: (other: { readonly notASampler: true }) => of({ x: Number(other.notASampler) }),
    }),
    train(trainer, { loss }),
  ),
];

describe('a pipeline in strict mode', () => {
  it('has the types it should', () => {
    expectTypeOf(supervised).returns.toEqualTypeOf<Observable<readonly [number, number | undefined]>>();
    expectTypeOf(orders).returns.items.toEqualTypeOf<Observable<Step>>();
    expectTypeOf(preferences).returns.toEqualTypeOf<Observable<Step>>();
    type Samples = ReturnType<typeof sampling>;
    expectTypeOf<Samples['plain']>().toEqualTypeOf<Observable<Sampled<ModelInput, SamplingClient>>>();
    expectTypeOf<Samples['items']>().toEqualTypeOf<Observable<number>>();
    expectTypeOf<Samples['settled']>().toEqualTypeOf<
      Observable<Either<SampleFailure<ModelInput>, Sampled<ModelInput, SamplingClient>>>
    >();
    expectTypeOf<Samples['asked']>().toEqualTypeOf<
      Observable<Either<SampleFailure<string>, Sampled<string, SamplingClient>>>
    >();
    expectTypeOf<SampleFailure<string>['error']>().toEqualTypeOf<TinkerError>();
    expectTypeOf(blocks).returns.toEqualTypeOf<Observable<Either<unknown, number>>>();
    type Fanned = ReturnType<typeof fanned>;
    expectTypeOf<Fanned['both']>().toEqualTypeOf<
      Observable<
        { readonly pipeline: 'train'; readonly value: Step } | { readonly pipeline: 'count'; readonly value: number }
      >
    >();
    expectTypeOf<Fanned['swept']>().toEqualTypeOf<Observable<number>>();
    expectTypeOf<Fanned['answered']>().toEqualTypeOf<Observable<Sampled<ModelInput, SamplingClient>>>();
    type Watched = ReturnType<typeof watched>;
    expectTypeOf<Watched['means']>().toEqualTypeOf<Observable<number>>();
    expectTypeOf<Watched['slopes']>().toEqualTypeOf<Observable<number>>();
    expectTypeOf<Watched['odd']>().toEqualTypeOf<Observable<number>>();
    expectTypeOf<Watched['stale']>().toEqualTypeOf<Observable<Step>>();
    expectTypeOf(decided).returns.toEqualTypeOf<{
      asked: Observable<Readonly<Record<string, number>>>;
      taught: Observable<Datum>;
    }>();
    expectTypeOf(refused).toBeFunction();
    expect(
      [supervised, orders, preferences, sampling, blocks, fanned, watched, decided, refused].every(
        (each) => each.length === 1,
      ),
    ).toBe(true);
  });

  it('is made of every operator of the README', () => {
    const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
    const table = read('../../README.md').split('## Operators')[1]!.split('\n## ')[0]!;
    const names = [...table.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell]) =>
      [...cell!.matchAll(/`(\w+)`/g)].map(([, name]) => name!),
    );
    expect(names.length).toBeGreaterThan(20);
    const here = read('./strictPipeline.test.ts');
    expect(names.filter((name) => !new RegExp(`[\\s(.]${name}\\(`).test(here))).toStrictEqual([]);
  });
});
