/** Spans as OpenTelemetry's own SDK receives them, of a run of reinforcement learning on the embedded service. */
import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-base';
import { from, lastValueFrom, merge, Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ServiceClient, type TinkerEvent } from '../../src/client/index.js';
import { LocalTinker } from '../../src/local/index.js';
import {
  ATTRIBUTE,
  SPAN,
  SPAN_EVENT,
  toOpenTelemetry,
  type OpenTelemetryOptions,
} from '../../src/opentelemetry/index.js';
import { repeatEpochs } from '../../src/operators/index.js';
import { reinforce, singleTurn, type RlEvent, type RolloutHook } from '../../src/rl/index.js';

function recorder() {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const spans = () => exporter.getFinishedSpans();
  const named = (name: string) => spans().filter((span) => span.name === name);
  const parentOf = (span: ReadableSpan) =>
    spans().find((other) => other.spanContext().spanId === span.parentSpanContext?.spanId);
  return { tracer: provider.getTracer('test'), spans, named, parentOf };
}

const tasks = [
  { question: 'What color is the sky?', answer: 'blue' },
  { question: 'What color is grass?', answer: 'green' },
];

async function run(options: OpenTelemetryOptions): Promise<void> {
  await using local = await LocalTinker.start();
  const service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
  const rlEvents$ = new Subject<RlEvent>();
  const spans = toOpenTelemetry(merge(service.events$, rlEvents$), options);
  const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4, seed: 1 });
  let tries = 0;
  const agent = singleTurn<(typeof tasks)[number]>({
    renderer: await trainer.getRenderer(),
    prompt: ({ question }) => question,
    // Rewards that are alike would teach nothing, and there would be no step.
    reward: () => tries++ % 2,
    samplingParams: { maxTokens: 8 },
  });
  // Without the hook for whole groups: one sample for each rollout.
  const alone: RolloutHook<(typeof tasks)[number]> = (...args) => agent(...args);
  await lastValueFrom(
    from(tasks).pipe(
      repeatEpochs({ epochs: 2 }),
      reinforce(trainer, alone, {
        group: 2,
        groupsPerBatch: 2,
        adam: { learningRate: 1e-3 },
        onEvent: (event) => rlEvents$.next(event),
      }),
    ),
  );
  spans.unsubscribe();
  await service.close();
}

describe('a run of reinforcement learning', () => {
  it('is spans of run, steps, rollouts and samples, each below the other', async () => {
    const { tracer, spans, named, parentOf } = recorder();
    await run({ tracer, name: 'first', attributes: { model: 'tiny' } });
    const [root] = named('first');
    expect(root!.attributes).toStrictEqual({ model: 'tiny' });
    const steps = named(SPAN.step);
    expect(steps.map(({ attributes }) => attributes[ATTRIBUTE.step]).sort()).toStrictEqual([0, 1]);
    const rollouts = named(SPAN.rollout);
    expect(rollouts).toHaveLength(8);
    const samples = named(SPAN.sample);
    expect(samples).toHaveLength(8);
    for (const span of steps) expect(parentOf(span)).toBe(root);
    for (const span of rollouts) expect(parentOf(span)!.name).toBe(SPAN.step);
    for (const span of samples) expect(parentOf(span)!.name).toBe(SPAN.rollout);
    for (const type of ['forward_backward', 'optim_step']) {
      expect(named(`tinker.${type}`)).toHaveLength(2);
      for (const span of named(`tinker.${type}`)) expect(parentOf(span)!.name).toBe(SPAN.step);
    }
    expect(rollouts.every(({ attributes }) => typeof attributes[ATTRIBUTE.reward] === 'number')).toBe(true);
    expect(samples.every(({ attributes }) => Number(attributes[ATTRIBUTE.outputTokens]) > 0)).toBe(true);
    expect(samples.every(({ attributes }) => typeof attributes[ATTRIBUTE.requestId] === 'string')).toBe(true);
    expect(Object.keys(steps[0]!.attributes).some((name) => name.startsWith('tinker.metric.'))).toBe(true);
    expect(root!.events.map(({ name }) => name)).toContain(SPAN_EVENT.policy);
    // Nothing of what was said.
    const told = JSON.stringify(spans().map(({ attributes, events }) => [attributes, events]));
    expect(told).not.toContain('What color');
    expect(spans().every(({ ended }) => ended)).toBe(true);
  });

  it('has prompts and completions as messages where they are asked for', async () => {
    const { tracer, named } = recorder();
    await run({ tracer, content: { decode: (tokens) => Buffer.from(Uint8Array.from(tokens)).toString('latin1') } });
    expect(named(SPAN.sample)).toHaveLength(8);
    for (const { attributes } of named(SPAN.sample)) {
      expect(JSON.parse(String(attributes['gen_ai.input.messages']))).toStrictEqual([
        { role: 'user', parts: [{ type: 'text', content: expect.stringContaining('What color') as string }] },
      ]);
      expect(JSON.parse(String(attributes['gen_ai.output.messages']))).toStrictEqual([
        {
          role: 'assistant',
          parts: [{ type: 'text', content: expect.any(String) as string }],
          finish_reason: (attributes['gen_ai.response.finish_reasons'] as string[])[0],
        },
      ]);
    }
  });

  it('sends the names of the current conventions, and none that they have replaced', async () => {
    const { tracer, spans, named } = recorder();
    await run({ tracer, model: 'tinker-rx/tiny', content: { decode: () => 'text' } });
    const sent = new Set(spans().flatMap(({ attributes }) => Object.keys(attributes)));
    expect([...sent].filter((name) => name.startsWith('gen_ai.')).sort()).toStrictEqual([
      'gen_ai.input.messages',
      'gen_ai.operation.name',
      'gen_ai.output.messages',
      'gen_ai.provider.name',
      'gen_ai.request.model',
      'gen_ai.response.finish_reasons',
      'gen_ai.usage.input_tokens',
      'gen_ai.usage.output_tokens',
    ]);
    for (const { kind, attributes } of named(SPAN.sample)) {
      expect(kind).toBe(SpanKind.CLIENT);
      expect(attributes).toMatchObject({
        'gen_ai.operation.name': 'text_completion',
        'gen_ai.provider.name': 'tinker',
        'gen_ai.request.model': 'tinker-rx/tiny',
      });
    }
  });
});

const work = { target: 'm', requestType: 'ForwardBackward', requestId: 'r1' } as const;
const sample = { target: 's', requestType: 'Sample', requestId: 'q' } as const;

describe('events by hand', () => {
  it('waits are events of the span that waits, at their time', () => {
    const { tracer, named } = recorder();
    const events$ = new Subject<TinkerEvent>();
    toOpenTelemetry(events$, { tracer });
    events$.next({ type: 'request-sent', atMs: 1000, bytes: 10, seqId: 1, ...work });
    events$.next({
      type: 'queue-state',
      atMs: 2000,
      state: 'paused_capacity',
      reason: 'full',
      waitedMs: 1000,
      ...work,
    });
    events$.next({ type: 'request-finished', atMs: 3000, elapsedMs: 2000, ...work });
    events$.next({ type: 'billing-paused', atMs: 3500, pausedMs: 5000, message: 'secret of the account' });
    events$.complete();
    const [pass] = named('tinker.forward_backward');
    expect([pass!.startTime, pass!.endTime]).toStrictEqual([
      [1, 0],
      [3, 0],
    ]);
    expect(pass!.events).toMatchObject([
      { name: SPAN_EVENT.queueState, time: [2, 0], attributes: { [ATTRIBUTE.state]: 'paused_capacity' } },
    ]);
    const [root] = named(SPAN.run);
    expect(root!.events.map(({ name }) => name)).toStrictEqual([SPAN_EVENT.billingPaused]);
    expect(JSON.stringify(root!.events)).not.toContain('secret');
  });

  it('a sample that is of no rollout is below the run', () => {
    const { tracer, named, parentOf } = recorder();
    const events$ = new Subject<TinkerEvent>();
    toOpenTelemetry(events$, { tracer });
    events$.next({ type: 'request-sent', atMs: 1, bytes: 10, seqId: 0, ...sample });
    events$.next({ type: 'request-finished', atMs: 5, elapsedMs: 4, ...sample });
    events$.complete();
    expect(parentOf(named(SPAN.sample)[0]!)!.name).toBe(SPAN.run);
    expect(named(SPAN.sample)[0]!.attributes).toMatchObject({ [ATTRIBUTE.provider]: 'tinker' });
  });

  it('a rollout that fails is an error without its message, and is told with it on request', () => {
    for (const content of [undefined, { decode: () => '' }]) {
      const { tracer, named } = recorder();
      const events$ = new Subject<RlEvent>();
      toOpenTelemetry(events$, { tracer, ...(content === undefined ? {} : { content }) });
      events$.next({ type: 'group-admitted', order: 0, step: 3 });
      events$.next({ type: 'rollout-started', order: 0, index: 0, attempt: 1 });
      events$.next({
        type: 'rollout-failed',
        order: 0,
        index: 0,
        attempt: 1,
        final: true,
        error: new TypeError('said'),
      });
      events$.error(new RangeError('the end'));
      const [rollout] = named(SPAN.rollout);
      expect(rollout!.status.code).toBe(SpanStatusCode.ERROR);
      expect(rollout!.status.message).toBe(content === undefined ? undefined : 'said');
      expect(rollout!.attributes[ATTRIBUTE.errorType]).toBe('TypeError');
      expect(named(SPAN.step)[0]!.attributes[ATTRIBUTE.step]).toBe(3);
      expect(named(SPAN.run)[0]!.status.code).toBe(SpanStatusCode.ERROR);
    }
  });

  it('unsubscribing ends every span once', () => {
    const { tracer, spans } = recorder();
    const events$ = new Subject<TinkerEvent>();
    const subscription = toOpenTelemetry(events$, { tracer });
    events$.next({ type: 'request-sent', atMs: 1, bytes: 10, seqId: 1, ...work });
    events$.next({ type: 'request-sent', atMs: 1, bytes: 10, seqId: 0, ...sample });
    subscription.unsubscribe();
    subscription.unsubscribe();
    expect(
      spans()
        .map(({ name }) => name)
        .sort(),
    ).toStrictEqual(['tinker.forward_backward', SPAN.run, SPAN.sample, SPAN.step]);
    expect(events$.observed).toBe(false);
  });
});
