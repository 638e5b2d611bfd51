// The same fake service by a clock that the test moves: for sums and lists where diagrams would be long.
import { from, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { BillingError, ServiceClient, type TinkerEvent, type TrainingClient } from 'tinker-rx';
import { dropped, type FakeTransport, fakeTransport, refusal, type Script, VirtualClock } from 'tinker-rx/testing';
import { fineTune } from '../src/pipeline.js';
import { capitals, renderer } from './conversations.js';

/** A service that takes ten seconds for everything, and a model on it. */
function start(script: Script = {}): {
  readonly clock: VirtualClock;
  readonly fake: FakeTransport;
  readonly trainer: TrainingClient;
  readonly events: readonly TinkerEvent[];
} {
  const clock = new VirtualClock();
  const fake = fakeTransport({ scheduler: clock, workMs: 10_000, script });
  const service = new ServiceClient(fake.clientOptions);
  const events: TinkerEvent[] = [];
  service.events$.subscribe((event) => events.push(event));
  return { clock, fake, trainer: clock.resolve(service.createLoraTrainingClient({ baseModel: 'any' })), events };
}
const NAMES: Readonly<Record<string, string>> = { forward_backward: 'pass', optim_step: 'step', save_weights: 'save' };

/** What was sent of training work, by the second. */
function sentAt({ requests }: FakeTransport): Record<string, string> {
  const sent: Record<string, string> = {};
  for (const { path, atMs } of requests) {
    const name = NAMES[path];
    const second = `${atMs / 1000} s`;
    if (name !== undefined) sent[second] = second in sent ? `${sent[second]} ${name}` : name;
  }
  return sent;
}

const rows = from([...capitals, ...capitals, ...capitals]); // six steps

describe('a run', () => {
  it('keeps one step submitted ahead, and saves right after every third', () => {
    const { clock, fake, trainer } = start();
    const steps = clock.resolve(fineTune(rows, trainer, renderer).pipe(toArray()));
    expect(steps.map(({ checkpoint }) => checkpoint?.name)).toEqual([
      undefined,
      undefined,
      'step-000003',
      undefined,
      undefined,
      'step-000006',
    ]);
    // Two steps at once, then two whenever two are done; a save has its turn between steps.
    expect(sentAt(fake)).toEqual({
      '10 s': 'pass step pass step',
      '20 s': 'pass step save pass step',
      '30 s': 'pass step pass step save',
    });
  });

  it('sends a step again under its number when the connection breaks', () => {
    const { clock, fake, trainer } = start({ optim_step: [dropped()] });
    clock.resolve(fineTune(rows, trainer, renderer));
    const [first, again] = fake.to('optim_step');
    expect([first!.seqId, again!.seqId]).toEqual([2, 2]);
    expect(again!.headers['x-idempotency-key']).toBe(first!.headers['x-idempotency-key']);
  });

  it('fails after an hour and five seconds without credit, and says every minute that it waits', () => {
    const { clock, trainer, events } = start({ forward_backward: refusal(402, 'no credit') });
    const startedMs = clock.now();
    expect(clock.reject(fineTune(rows, trainer, renderer))).toBeInstanceOf(BillingError);
    expect(clock.now() - startedMs).toBe(3_605_000);
    expect(events.filter(({ type }) => type === 'billing-paused')).toHaveLength(61);
  });
});
