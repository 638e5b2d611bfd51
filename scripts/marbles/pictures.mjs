// What each picture shows: the stream that is run, and in which order its rows and calls stand.
import { left, right } from 'fp-ts/lib/Either.js';
import { concatMap, defer, identity, map, timer } from 'rxjs';
import { ModelInput, TensorData } from '../../src/index.ts';
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
  markBatches,
  mergeMapWeighted,
  movingMean,
  named,
  partition,
  plateau,
  rateLimit,
  reduceMetrics,
  repeatEpochs,
  retryBackoff,
  sampleFrom,
  settle,
  shuffle,
  slope,
  takeUntilIdle,
  toDatums,
  toDecisions,
  tokensPerSecond,
  toPairs,
  train,
  trainPreferences,
  trainUntil,
  unsettle,
  withReference,
  withSoftTargets,
} from '../../src/operators/index.ts';
import { ByteTokenizer, getRenderer } from '../../src/chat/index.ts';
import { datum, fakeTrainer } from '../../test/marbles/fakeTrainer.ts';
import { gated } from '../../test/marbles/gated.ts';

const rows = (group) => ({ group });
const call = (text) => ({ call: text });
/** The usual picture: what goes in, the call, what comes out. */
const around = (text) => [rows('source'), call(text), rows('result')];

const letters = (label) => ({ label: (values) => values.map(label ?? String).join('') });
/** Batches that can be told apart: `a` has one token, `b` two. */
const batches = { a: [datum(1)], b: [datum(2)], c: [datum(3)], d: [datum(4)] };
const letterOf = (data) => 'abcd'[data[0].modelInput.length - 1];
const bare = { label: letterOf };

/** The fake trainer of the marble tests, with a row for each pass and each save. */
function trainerOn(watch, options) {
  const { trainer } = fakeTrainer(options);
  const step = (data) => ({ name: `step ${letterOf(data)}`, label: () => letterOf(data) });
  return {
    ...trainer,
    forwardBackward: (data, ...rest) => trainer.forwardBackward(data, ...rest).pipe(watch('service', step(data))),
    saveState: (...rest) => trainer.saveState(...rest).pipe(watch('service', { name: 'save', label: () => '★' })),
  };
}
const stepLabel = { label: ({ index, checkpoint }) => 'abcd'[index] + (checkpoint === undefined ? '' : '★') };
const TRAIN = { loss: 'cross_entropy' };
const lossLabel = { label: ({ loss }) => `loss ${loss}` };
/** Takes one value at a time, and so long for it. */
const slowly = (ms) => concatMapAhead((value) => timer(ms).pipe(map(() => value)), { ahead: 0 });

/** What the pictures of decisions ask: a text is its length in milliseconds. */
const DECISION = { renderer: getRenderer('tinker_rx_bytes', new ByteTokenizer()), labels: ['yes', 'no'] };

export const pictures = [
  {
    name: 'batch',
    layout: around('batch({ size: 2 })'),
    stream: ({ cold, watch }) =>
      cold('-a-b-c-d-e-|').pipe(watch('source'), batch({ size: 2 }), watch('result', letters())),
  },
  {
    name: 'batchByWeight',
    layout: around('batchByWeight({ weight: Number, limit: 4 })'),
    stream: ({ cold, watch }) =>
      cold('-1-2-3-1-6-|').pipe(
        watch('source'),
        batchByWeight({ weight: Number, limit: 4 }),
        watch('result', letters()),
      ),
  },
  {
    name: 'shuffle',
    layout: around('shuffle({ window: 3, seed: 4 })'),
    stream: ({ cold, watch }) =>
      cold('-a-b-c-d-e-f-|').pipe(watch('source'), shuffle({ window: 3, seed: 4 }), watch('result')),
  },
  {
    name: 'repeatEpochs',
    layout: around('repeatEpochs({ epochs: 3 })'),
    stream: ({ cold, watch }) => cold('-a-b-|').pipe(watch('source'), repeatEpochs({ epochs: 3 }), watch('result')),
  },
  {
    name: 'interleave',
    layout: [rows('a'), rows('b'), call('interleave([{ source: a, weight: 2 }, { source: b }])'), rows('result')],
    stream: ({ cold, watch }) =>
      interleave([
        { source: cold('-a-a-a-a-|').pipe(watch('a')), weight: 2 },
        { source: cold('--------b----b-|').pipe(watch('b')) },
      ]).pipe(watch('result')),
  },
  {
    name: 'toPairs',
    layout: around('toPairs(renderer)'),
    stream: ({ cold, watch }) => {
      const renderer = {
        buildSupervisedExamples: () => [{ modelInput: ModelInput.fromInts([1, 2]), weights: [0, 1] }],
      };
      const row = { prompt: 'q', chosen: 'a', rejected: 'b' };
      return cold('--a---b---|', { a: row, b: row }).pipe(
        watch('source', { label: () => 'a > b' }),
        toPairs(renderer),
        watch('result', { label: () => '[a, b]' }),
      );
    },
  },
  {
    name: 'toDecisions',
    layout: around("toDecisions({ renderer, labels: ['yes', 'no'] })"),
    stream: ({ cold, watch }) =>
      cold('--a---b---|', { a: { text: 'a', label: 'yes' }, b: { text: 'b', label: 'no' } }).pipe(
        watch('source', { label: ({ label }) => label }),
        toDecisions(DECISION),
        watch('result', { label: ({ lossFnInputs }) => String.fromCodePoint(lossFnInputs.target_tokens.data.at(-1)) }),
      ),
  },
  {
    name: 'withReference',
    layout: [rows('source'), call('withReference(reference)'), rows('reference'), rows('result')],
    stream: ({ cold, watch }) => {
      const reference = {
        computeLogprobs: (prompt) =>
          timer(4).pipe(
            map(() => new Float32Array(prompt.length)),
            watch('reference', { name: 'asked', label: () => '∘' }),
          ),
      };
      return cold('-a-b----c-|', batches).pipe(
        watch('source', bare),
        withReference(reference),
        watch('result', { label: ({ data }) => letterOf(data) }),
      );
    },
  },
  {
    name: 'withSoftTargets',
    layout: [rows('source'), call('withSoftTargets(teacher, { topK: 20 })'), rows('teacher'), rows('result')],
    stream: ({ cold, watch }) => {
      const weighted = (data) => data.map(() => datum(data[0].modelInput.length, 1));
      const teacher = {
        sample: ({ prompt, topkPromptLogprobs: k }) =>
          timer(4).pipe(
            map(() => {
              const { length } = prompt;
              const cells = length * k;
              const topk = { tokenIds: new Int32Array(cells), logprobs: new Float32Array(cells), k, length };
              return { sequences: [], promptCacheHitTokens: 0, topkPromptLogprobs: topk };
            }),
            watch('teacher', { name: 'asked', label: () => '∘' }),
          ),
      };
      const made = Object.fromEntries(Object.entries(batches).map(([name, data]) => [name, weighted(data)]));
      return cold('-a-b----c-|', made).pipe(
        watch('source', bare),
        withSoftTargets(teacher, { topK: 20 }),
        watch('result', { label: ({ data }) => letterOf(data) }),
      );
    },
  },
  {
    name: 'trainPreferences',
    layout: [rows('source'), call('trainPreferences(trainer, { reference })'), rows('service'), rows('result')],
    stream: ({ cold, watch }) => {
      const { trainer } = fakeTrainer();
      const step = (data) => ({ name: `step ${letterOf(data)}`, label: () => letterOf(data) });
      const watched = {
        ...trainer,
        forwardBackwardCustom: (data, loss) =>
          trainer.forwardBackwardCustom(data, loss).pipe(watch('service', step(data))),
      };
      const reference = { computeLogprobs: (prompt) => timer(1).pipe(map(() => new Float32Array(prompt.length))) };
      return cold('-a-b-c---|', batches).pipe(
        watch('source', bare),
        trainPreferences(watched, { reference }),
        watch('result', stepLabel),
      );
    },
  },
  {
    name: 'toDatums',
    layout: around('toDatums(renderer)'),
    stream: ({ cold, watch }) => {
      // A renderer whose history reads differently as it grows makes an example for each reply.
      const example = (token) => ({ modelInput: ModelInput.fromInts([token, token]), weights: [0, 1] });
      const renderer = {
        buildSupervisedExamples: (messages) =>
          messages.filter(({ role }) => role === 'assistant').map((_, index) => example(index + 1)),
      };
      const turn = [
        { role: 'user', content: 'q' },
        { role: 'assistant', content: 'a' },
      ];
      return cold('--a---b---|', { a: turn, b: [...turn, ...turn] }).pipe(
        watch('source', { label: ({ length }) => (length === 2 ? '1 turn' : '2 turns') }),
        toDatums(renderer, { trainOn: 'all_assistant_messages' }),
        watch('result', { label: () => 'datum' }),
      );
    },
  },
  {
    name: 'train',
    layout: [rows('source'), call('train(trainer, { loss, ahead: 1 })'), rows('service'), rows('result')],
    stream: ({ cold, watch }) =>
      cold('(abcd|)', batches).pipe(watch('source', bare), train(trainerOn(watch), TRAIN), watch('result', stepLabel)),
  },
  {
    name: 'trainUntil',
    layout: [
      rows('source'),
      rows('stop$'),
      call('trainUntil(stop$, trainer, { loss, ahead: 0 })'),
      rows('service'),
      rows('result'),
    ],
    stream: ({ cold, watch }) => {
      const stop$ = cold('------x').pipe(watch('stop$', { label: () => '^C' }));
      return cold('(abcd|)', batches).pipe(
        watch('source', bare),
        trainUntil(stop$, trainerOn(watch), { ...TRAIN, ahead: 0 }),
        watch('result', stepLabel),
      );
    },
  },
  {
    name: 'checkpointEvery',
    layout: [
      rows('source'),
      call('checkpointEvery({ steps: 2 })'),
      call('train(trainer, { loss })'),
      rows('service'),
      rows('result'),
    ],
    stream: ({ cold, watch }) =>
      cold('(abcd|)', batches).pipe(
        watch('source', bare),
        checkpointEvery({ steps: 2 }),
        train(trainerOn(watch), TRAIN),
        watch('result', stepLabel),
      ),
  },
  {
    name: 'evaluateEvery',
    layout: [
      rows('source'),
      call('evaluateEvery({ steps: 2, evaluate })'),
      call('train(trainer, { loss })'),
      rows('service'),
      rows('evaluate'),
      rows('result'),
    ],
    stream: ({ cold, watch }) => {
      const evaluate = (sampler) =>
        timer(6).pipe(
          map(() => ({ steps: sampler.steps })),
          watch('evaluate', { label: ({ steps }) => `of ${'abcd'[steps - 1]}` }),
        );
      return cold('(abcd|)', batches).pipe(
        watch('source', bare),
        evaluateEvery({ steps: 2, evaluate }),
        train(trainerOn(watch), TRAIN),
        watch('result', {
          label: ({ index, evaluations = [] }) =>
            'abcd'[index] + evaluations.map(({ metrics }) => `+${'abcd'[metrics.steps - 1]}`).join(''),
        }),
      );
    },
  },
  {
    name: 'markBatches',
    layout: [
      rows('source'),
      call("markBatches((trainer, { steps }) => { if (steps === 2) trainer.saveState('two'); })"),
      call('train(trainer, { loss })'),
      rows('service'),
      rows('result'),
    ],
    stream: ({ cold, watch }) =>
      cold('(abcd|)', batches).pipe(
        watch('source', bare),
        markBatches((trainer, { steps, start }) => {
          if (steps === 2) start(trainer.saveState('two', {}));
        }),
        train(trainerOn(watch), TRAIN),
        watch('result', stepLabel),
      ),
  },
  {
    name: 'continueFrom',
    layout: around('continueFrom({ batches: 2 })'),
    stream: ({ cold, watch }) =>
      cold('-a-b-c-d-|', batches).pipe(
        watch('source', bare),
        continueFrom({ batches: 2 }),
        watch('result', { label: ({ data, position }) => `${letterOf(data)} ${position}` }),
      ),
  },
  {
    name: 'decide',
    layout: [
      rows('source'),
      call("decide(sampler, { renderer, labels: ['yes', 'no'] })"),
      rows('sampler'),
      rows('result'),
    ],
    stream: ({ cold, watch }) => {
      const sampler = {
        sample: ({ prompt, targetPromptLogprobs: { shape, sparse } }) =>
          timer(prompt.length).pipe(
            map(() => ({
              targetPromptLogprobs: new TensorData({
                ...{ dtype: 'float32', shape, sparse },
                data: Float32Array.of(-0.5, prompt.length > 5 ? -2 : 0),
              }),
            })),
            watch('sampler', { name: 'asked', label: () => '∘' }),
          ),
      };
      return cold('-a-b------|', { a: 'rain', b: 'x' }).pipe(
        watch('source', { label: (text) => text }),
        decide(sampler, DECISION),
        watch('result', { label: ({ label }) => label }),
      );
    },
  },
  {
    name: 'sampleFrom',
    layout: [rows('source'), call('sampleFrom(sampler, { concurrency: 2 })'), rows('sampler'), rows('result')],
    stream: ({ cold, watch }) => {
      const work = { a: '------a|', b: '--b|', c: '----c|' };
      const prompts = Object.fromEntries(
        Object.keys(work).map((name, index) => [name, { name, prompt: ModelInput.fromInts([index]) }]),
      );
      const sampler = {
        sample: ({ prompt }) => {
          const name = 'abc'[prompt.chunks[0].tokens[0]];
          return cold(work[name]).pipe(watch('sampler', { name: `sample ${name}` }));
        },
      };
      return cold('(abc|)', prompts).pipe(
        watch('source', { label: ({ name }) => name }),
        sampleFrom(sampler, { concurrency: 2 }),
        watch('result', { label: ({ item }) => item.name }),
      );
    },
  },
  {
    name: 'mergeMapWeighted',
    layout: [
      rows('source'),
      call('mergeMapWeighted(project, { weight: () => 1, budget: 1 })'),
      rows('inner'),
      rows('result'),
    ],
    stream: ({ cold, watch }) => {
      const inners = { a: '------x|', b: '-------y|', c: '--z|' };
      return cold('-a-b-c------|').pipe(
        watch('source'),
        mergeMapWeighted((value) => cold(inners[value]).pipe(watch('inner', { name: `project(${value})` })), {
          weight: () => 1,
          budget: 1,
        }),
        watch('result'),
      );
    },
  },
  {
    name: 'concatMapAhead',
    layout: [rows('source'), call('concatMapAhead(project, { ahead: 1 })'), rows('inner'), rows('result')],
    stream: ({ cold, watch }) => {
      const inners = { a: '-----w|', b: '-x-y|', c: '-----z|' };
      return cold('-a-b-c------|').pipe(
        watch('source'),
        concatMapAhead((value) => cold(inners[value]).pipe(watch('inner', { name: `project(${value})` })), {
          ahead: 1,
        }),
        watch('result'),
      );
    },
  },
  {
    name: 'keepGate',
    layout: [
      rows('file name'),
      call('keepGate(), concatMap(fromJsonl)'),
      rows('rows'),
      call('concatMapAhead(slowly, { ahead: 0 })'),
      rows('result'),
    ],
    stream: ({ cold, watch }) =>
      cold('--f|').pipe(
        watch('file name'),
        keepGate(),
        concatMap(() => gated(3).source.pipe(watch('rows'))),
        concatMapAhead((row) => timer(4).pipe(map(() => row)), { ahead: 0 }),
        watch('result'),
      ),
  },
  {
    name: 'retryBackoff',
    layout: around('retryBackoff({ initialMs: 2, jitter: 0 })'),
    stream: ({ cold, watch }) => {
      const tries = ['-a-#', '--#', '-b-|'];
      const failure = Object.assign(new Error('in passing'), { retryable: true });
      let next = 0;
      return defer(() => cold(tries[next++] ?? '|', undefined, failure)).pipe(
        watch('source'),
        retryBackoff({ initialMs: 2, jitter: 0 }),
        watch('result'),
      );
    },
  },
  {
    name: 'settle',
    layout: around('settle()'),
    stream: ({ cold, watch }) =>
      cold('-a---b---#').pipe(
        watch('source'),
        settle(),
        watch('result', { label: (either) => (either._tag === 'Right' ? `right ${either.right}` : 'left error') }),
      ),
  },
  {
    name: 'takeUntilIdle',
    layout: around('takeUntilIdle({ idleMs: 4 })'),
    stream: ({ cold, watch }) =>
      cold('-a-b---------c-|').pipe(watch('source'), takeUntilIdle({ idleMs: 4 }), watch('result')),
  },
  {
    name: 'reduceMetrics',
    layout: around('reduceMetrics({ window: 2 })'),
    stream: ({ cold, watch }) =>
      cold('-a---b---c---|', { a: { loss: 4 }, b: { loss: 2 }, c: { loss: 0 } }).pipe(
        watch('source', { label: ({ loss }) => `loss ${loss}` }),
        reduceMetrics({ window: 2 }),
        watch('result', { label: ({ windowed }) => `mean ${windowed.loss.mean}` }),
      ),
  },
  {
    name: 'tokensPerSecond',
    layout: around('tokensPerSecond({ window: 2 })'),
    stream: ({ cold, watch }) =>
      cold('----a----a---a---|', { a: { tokens: 10 } }).pipe(
        watch('source', { label: ({ tokens }) => `${tokens} tokens` }),
        tokensPerSecond({ window: 2 }),
        watch('result', { label: (value) => `${Math.round(value.tokensPerSecond)}/s` }),
      ),
  },
  {
    name: 'broadcast',
    layout: [
      rows('source'),
      call('broadcast({ slow: concatMapAhead(…), pairs: batch({ size: 2 }) }, { buffer: 1 })'),
      rows('result'),
    ],
    stream: ({ watch }) =>
      timer(2).pipe(
        keepGate(),
        concatMap(() => gated(4).source),
        map((row) => 'abcd'[row]),
        watch('source'),
        broadcast({ slow: slowly(4), pairs: batch({ size: 2 }) }, { buffer: 1 }),
        watch('result', { label: ({ pipeline, value }) => `${pipeline} ${[value].flat().join('')}` }),
      ),
  },
  {
    name: 'partition',
    layout: [rows('source'), call('partition(byCase, { small: batch({ size: 2 }), large: identity })'), rows('result')],
    stream: ({ cold, watch }) =>
      cold('-a---B---c---D--|').pipe(
        watch('source'),
        partition((letter) => (letter === letter.toLowerCase() ? 'small' : 'large'), {
          small: batch({ size: 2 }),
          large: identity,
        }),
        watch('result', { label: ({ pipeline, value }) => `${pipeline} ${[value].flat().join('')}` }),
      ),
  },
  {
    name: 'rateLimit',
    layout: around('rateLimit({ limit: 1, perMs: 4, burst: 2 })'),
    stream: ({ cold, watch }) =>
      cold('-(abcd)-----------(e|)').pipe(
        watch('source'),
        rateLimit({ limit: 1, perMs: 4, burst: 2 }),
        watch('result'),
      ),
  },
  {
    name: 'unsettle',
    layout: around("unsettle('skip')"),
    stream: ({ cold, watch }) =>
      cold('--a---b---c---|', { a: right('a'), b: left({ item: 'b', error: new Error('bad') }), c: right('c') }).pipe(
        watch('source', { label: (each) => (each._tag === 'Right' ? `right ${each.right}` : 'left b') }),
        unsettle('skip'),
        watch('result'),
      ),
  },
  {
    name: 'named',
    layout: around("named('judge', concatMapAhead(judge, { ahead: 0 }))"),
    stream: ({ cold, watch }) => cold('-a-b------|').pipe(watch('source'), named('judge', slowly(3)), watch('result')),
  },
  {
    name: 'movingMean',
    layout: around('movingMean({ window: 2 })'),
    stream: ({ cold, watch }) =>
      cold('--a---b---c---|', { a: { loss: 4 }, b: { loss: 2 }, c: { loss: 0 } }).pipe(
        watch('source', lossLabel),
        movingMean({ window: 2 }),
        watch('result'),
      ),
  },
  {
    name: 'slope',
    layout: around('slope({ window: 3 })'),
    stream: ({ cold, watch }) =>
      cold('--a---b---c---d---|', { a: { loss: 5 }, b: { loss: 4 }, c: { loss: 3 }, d: { loss: 3 } }).pipe(
        watch('source', lossLabel),
        slope({ window: 3 }),
        watch('result'),
      ),
  },
  {
    name: 'anomaly',
    layout: around('anomaly({ above: 9 })'),
    stream: ({ cold, watch }) =>
      cold('--a---b---c---d---|', { a: { loss: 2 }, b: { loss: 90 }, c: { loss: 1 }, d: { loss: NaN } }).pipe(
        watch('source', lossLabel),
        anomaly({ above: 9 }),
        watch('result', { label: ({ reason }) => reason }),
      ),
  },
  {
    name: 'plateau',
    layout: around('plateau({ patience: 2 })'),
    stream: ({ cold, watch }) =>
      cold('--a---b---b---c---d---|', { a: { loss: 5 }, b: { loss: 4 }, c: { loss: 6 }, d: { loss: 3 } }).pipe(
        watch('source', lossLabel),
        plateau({ patience: 2 }),
        watch('result', lossLabel),
      ),
  },
];
