import type { EnginePort } from '../enginePort.js';
import type { SampleRequest, SampleResult } from '../engine/types.js';
import type { SamplerSource } from './samplingSessions.js';

interface Resident {
  readonly samplerId: string;
  readonly ready: Promise<void>;
  inUse: number;
}

/** The samplers that the engine holds in memory: loaded at first use, the least recently used unloaded at the limit. */
export class SamplerPool {
  /** In order of use: the least recent first. */
  readonly #residents = new Map<string, Resident>();
  #count = 0;

  constructor(
    private readonly engine: EnginePort,
    private readonly limit: number,
  ) {}

  async sample(source: SamplerSource, request: SampleRequest, signal: AbortSignal): Promise<SampleResult> {
    const resident = this.#use(source);
    try {
      await resident.ready;
      return await this.engine.sample(resident.samplerId, request, { signal });
    } finally {
      resident.inUse--;
      this.#evict();
    }
  }

  /** Unloads weights that nobody will ask for again. */
  release(key: string): void {
    const resident = this.#residents.get(key);
    if (resident !== undefined && resident.inUse === 0) this.#unload(key, resident);
  }

  #use(source: SamplerSource): Resident {
    let resident = this.#residents.get(source.key);
    if (resident === undefined) {
      const samplerId = `sampler-${this.#count++}`;
      resident = { samplerId, ready: this.#load(samplerId, source), inUse: 0 };
      resident.ready.catch(() => this.#residents.delete(source.key));
    }
    this.#residents.delete(source.key);
    this.#residents.set(source.key, resident);
    resident.inUse++;
    return resident;
  }

  async #load(samplerId: string, { load, baseModel }: SamplerSource): Promise<void> {
    await this.engine.createSampler(load === undefined ? { samplerId, baseModel } : { samplerId, state: await load() });
  }

  #evict(): void {
    for (const [key, resident] of this.#residents) {
      if (this.#residents.size <= this.limit) return;
      if (resident.inUse === 0) this.#unload(key, resident);
    }
  }

  #unload(key: string, resident: Resident): void {
    this.#residents.delete(key);
    void resident.ready.then(() => this.engine.disposeSampler(resident.samplerId)).catch(() => undefined);
  }
}
