// Clients load this when it is first needed. A test that does not wait for that would leave it half loaded to the files behind it.
import 'tinker-rx/chat';
import {
  ModelInput,
  ServiceClient,
  type Datum,
  type SamplingClient,
  type TinkerEvent,
  type TrainingClient,
} from 'tinker-rx';
import {
  VirtualClock,
  fakeTransport,
  type FakeRequest,
  type FakeTransport,
  type FakeTransportOptions,
} from 'tinker-rx/testing';
import type { ServiceClientOptions } from '../../../src/client/ServiceClient.js';

export interface Stage {
  readonly clock: VirtualClock;
  readonly fake: FakeTransport;
  readonly service: ServiceClient;
  readonly events: readonly TinkerEvent[];
  readonly eventsOf: <T extends TinkerEvent['type']>(type: T) => readonly Extract<TinkerEvent, { type: T }>[];
  readonly trainer: () => TrainingClient;
  readonly sampler: (options?: Parameters<ServiceClient['createSamplingClient']>[0]) => SamplingClient;
}

/** A client, a fake service and a virtual clock for both. */
export function stage(
  fakeOptions: Omit<FakeTransportOptions, 'scheduler'> = {},
  serviceOptions: ServiceClientOptions = {},
): Stage {
  const clock = new VirtualClock();
  const fake = fakeTransport({ scheduler: clock, ...fakeOptions });
  const service = new ServiceClient({ ...fake.clientOptions, ...serviceOptions });
  const events: TinkerEvent[] = [];
  service.events$.subscribe((event) => events.push(event));
  return {
    clock,
    fake,
    service,
    events,
    eventsOf: (type) => events.filter((event) => event.type === type) as never,
    trainer: () => clock.resolve(service.createLoraTrainingClient({ baseModel: 'any' })),
    sampler: (options = { baseModel: 'any' }) => clock.resolve(service.createSamplingClient(options)),
  };
}

export const datum = (length = 3): Datum => ({
  modelInput: ModelInput.fromInts(new Int32Array(length).fill(7)),
  lossFnInputs: { target_tokens: new Int32Array(length).fill(7), weights: new Float32Array(length).fill(1) },
});
export const prompt = (length = 3): ModelInput => ModelInput.fromInts(new Int32Array(length).fill(7));

/** `path#seq@ms` of training work, in the order it was sent. */
const TRAINING = new Set([
  'forward_backward',
  'forward',
  'optim_step',
  'save_weights',
  'load_weights',
  'save_weights_for_sampler',
]);
export const trainingSends = (fake: FakeTransport): string[] =>
  fake.requests.filter(({ path }) => TRAINING.has(path)).map(({ path, seqId, atMs }) => `${path}#${seqId}@${atMs}`);

export const times = (requests: readonly FakeRequest[]): number[] => requests.map(({ atMs }) => atMs);
/** The waits between requests. */
export const gaps = (requests: readonly FakeRequest[]): number[] =>
  requests.slice(1).map(({ atMs }, index) => atMs - requests[index]!.atMs);
