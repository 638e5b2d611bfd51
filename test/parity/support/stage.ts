import { setImmediate } from 'node:timers/promises';
import {
  RestClient,
  AdminClient,
  ServiceClient,
  type SamplingClient,
  type ServiceClientOptions,
  type TrainingClient,
} from 'tinker-rx';
import type { SdkFixture } from './fixture.js';
import { plain } from './plain.js';
import { Replay } from './replay.js';

export const API_KEY = 'tml-recorded-key';
export const WEIGHTS_TOKEN = 'tml-other-account';
export const BASE_URL = 'http://service.test/services/recorded';
export const BASE_MODEL = 'Qwen/Qwen3-8B';

export interface Result {
  readonly call: string;
  readonly value: unknown;
}

/** Our side of a scenario: clients that talk to the recording, and what their calls gave. */
export class Stage {
  readonly replay: Replay;
  readonly results: Result[] = [];
  readonly #services: ServiceClient[] = [];

  constructor(fixture: SdkFixture) {
    this.replay = new Replay(fixture);
  }

  get connection() {
    return { apiKey: API_KEY, baseUrl: BASE_URL, transport: this.replay.transport };
  }

  service(options: ServiceClientOptions = {}): ServiceClient {
    const service = new ServiceClient({ ...this.connection, telemetry: false, logLevel: 'silent', ...options });
    this.#services.push(service);
    return service;
  }

  rest(): RestClient {
    return new RestClient(this.connection);
  }

  admin(): AdminClient {
    return new AdminClient(this.connection);
  }

  async trainer(): Promise<TrainingClient> {
    return this.service().createLoraTrainingClient({ baseModel: BASE_MODEL });
  }

  async sampler(options: { recordStabilityInfo?: boolean } = {}): Promise<SamplingClient> {
    return this.service().createSamplingClient({ baseModel: BASE_MODEL, ...options });
  }

  /** Waits for a call and notes what it gave; a failure is a result too. */
  async result<A>(call: string, future: PromiseLike<A>): Promise<A | undefined> {
    try {
      const value = await future;
      this.results.push({ call, value: plain(value) });
      return value;
    } catch (error) {
      this.results.push({ call, value: error });
      return undefined;
    }
  }

  /** Waits until a request to the path went out. */
  async sent(path: string): Promise<void> {
    while (!this.replay.sent.some((entry) => entry.path === path)) await setImmediate();
  }

  /** Waits until nothing is sent any more. */
  async quiet(): Promise<void> {
    let before = -1;
    while (before !== this.replay.sent.length) {
      before = this.replay.sent.length;
      for (let turn = 0; turn < 20; turn++) await setImmediate();
    }
  }

  async close(): Promise<void> {
    for (const service of this.#services) await service.destroy();
  }
}

/** Plays one scenario; what it sends and gets is then held against the recording. */
export type Play = (stage: Stage) => Promise<void>;
