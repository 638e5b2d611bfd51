import { chooseToken } from './chooseToken.js';
import { EngineCancelledError } from '../errors.js';
import type { Heap } from '../numeric/heap.js';
import { floatsPerPosition, type KvCache } from '../model/kvCache.js';
import { scaledRow, type LogitRow } from './logitRow.js';
import { logitRows, prefill, type Prefilled } from './prefill.js';
import { PrefixCache } from './prefixCache.js';
import { createRandom, type Random } from '../numeric/random.js';
import type { CheckedSample } from './sampleRequest.js';
import type { Sampler } from './sampler.js';
import { createTopkTable, fillTopkRow, shortenTopkTable } from './topkTable.js';
import type { SampledTokens, SampleResult, TopkTable } from '../types.js';

/** Sequences decoded side by side, and the floats their caches may come to need; further ones wait. */
const MAX_ROWS = 64;
const MAX_CACHE_FLOATS = 1 << 26;
/** Floats that the adapters of running sequences may take together. */
const MAX_ADAPTER_FLOATS = 1 << 27;
/** Tokens that a sequence is expected to have at most; most that may have more stop before. */
const EXPECTED_TOKENS = 1024;
/** Time after which no further prompt is begun before the running sequences move on. */
const ADMIT_MS = 10;

/** A sequence being decoded. */
interface Row {
  readonly job: Job;
  readonly index: number;
  readonly random: Random;
  readonly tokens: number[];
  readonly logprobs: number[];
  readonly topk: TopkTable | undefined;
  cache: KvCache;
}

/** A pending request. */
interface Job {
  readonly sampler: Sampler;
  readonly request: CheckedSample;
  readonly seed: number;
  /** What the cache of one of its sequences may grow to. */
  readonly floats: number;
  readonly resolve: (result: SampleResult) => void;
  readonly reject: (error: Error) => void;
  readonly sequences: SampledTokens[];
  /** The prompt, once it is computed. */
  prefilled: Prefilled | undefined;
  started: number;
  finished: number;
  settled: boolean;
}

/**
 * Decodes the samples of all requests together: one batch per step for each sampler, rows joining and leaving as they
 * start and end. A row's numbers do not depend on the other rows. {@link advance} does one step.
 */
export class SamplePool {
  readonly #heap: Heap;
  readonly #waiting: Job[] = [];
  readonly #rows = new Set<Row>();
  readonly #prefixes = new PrefixCache();
  #reserved = 0;

  constructor(heap: Heap) {
    this.#heap = heap;
  }

  get busy(): boolean {
    return this.#waiting.length > 0 || this.#rows.size > 0;
  }

  /** Queues a request; returns its result and a way to cancel it. */
  add(
    sampler: Sampler,
    request: CheckedSample,
  ): { readonly result: Promise<SampleResult>; readonly cancel: () => void } {
    let job!: Job;
    const result = new Promise<SampleResult>((resolve, reject) => {
      job = {
        sampler,
        request,
        floats:
          floatsPerPosition(sampler.transformer.base.shape) *
          (request.prompt.length + Math.min(request.limit, EXPECTED_TOKENS)),
        seed: request.seed ?? Math.floor(Math.random() * Number.MAX_SAFE_INTEGER),
        resolve,
        reject,
        sequences: [],
        prefilled: undefined,
        started: 0,
        finished: 0,
        settled: false,
      };
    });
    sampler.retain();
    this.#waiting.push(job);
    return { result, cancel: () => this.#fail(job, new EngineCancelledError('the sample was cancelled')) };
  }

  /** Drops what is kept of a sampler's prompts. */
  forget(sampler: Sampler): void {
    this.#prefixes.forget(sampler);
  }

  /** Starts what fits, then decodes one token of every running sequence. A failure ends the jobs it belongs to. */
  advance(): void {
    this.#admit();
    const groups = new Map<Sampler, Row[]>();
    for (const row of this.#rows) {
      const group = groups.get(row.job.sampler);
      if (group === undefined) groups.set(row.job.sampler, [row]);
      else group.push(row);
    }
    for (const [sampler, rows] of groups) {
      const mark = this.#heap.mark();
      try {
        this.#step(sampler, rows);
      } catch (error) {
        for (const row of rows) this.#fail(row.job, error as Error);
      } finally {
        this.#heap.release(mark);
      }
    }
  }

  #admit(): void {
    const until = performance.now() + ADMIT_MS;
    while (this.#rows.size < MAX_ROWS && performance.now() < until) {
      const job = this.#waiting[0];
      if (job === undefined || (this.#rows.size > 0 && !this.#hasRoomFor(job))) return;
      const mark = this.#heap.mark();
      try {
        job.prefilled ??= this.#prefill(job);
        this.#start(job);
      } catch (error) {
        this.#fail(job, error as Error);
      } finally {
        this.#heap.release(mark);
      }
      if (job.started === job.request.numSamples && this.#waiting[0] === job) this.#waiting.shift();
    }
  }

  #hasRoomFor({ sampler, floats }: Job): boolean {
    if (this.#reserved + floats > MAX_CACHE_FLOATS) return false;
    const samplers = new Set([sampler]);
    for (const row of this.#rows) samplers.add(row.job.sampler);
    if (samplers.size === 1) return true;
    let adapters = 0;
    for (const one of samplers) adapters += one.floats;
    return adapters <= MAX_ADAPTER_FLOATS;
  }

  #prefill({ sampler, request, seed }: Job): Prefilled {
    const prefilled = prefill(this.#heap, this.#prefixes, sampler, request, seed);
    this.#prefixes.retain(prefilled.prefix);
    return prefilled;
  }

  #start(job: Job): void {
    const { request } = job;
    const { cache, first } = job.prefilled!.prefix;
    const topk = request.topkSample > 0 ? createTopkTable(request.limit, request.topkSample) : undefined;
    const own = cache.fork(cache.capacity);
    const index = job.started++;
    const row: Row = { job, index, random: createRandom(job.seed, index), tokens: [], logprobs: [], topk, cache: own };
    this.#rows.add(row);
    this.#reserved += job.floats;
    if (job.started === request.numSamples) this.#prefixes.release(job.prefilled!.prefix);
    this.#take(row, first);
  }

  #step(sampler: Sampler, rows: readonly Row[]): void {
    const { transformer } = sampler;
    const adapter = sampler.adapter();
    const tokens = Int32Array.from(rows, (row) => row.tokens.at(-1)!);
    const caches = rows.map((row) => row.cache);
    const normed = transformer.step(tokens, caches, adapter);
    const { logits } = transformer.head(normed, rows.length, adapter);
    const next = logitRows(this.#heap, logits, rows.length, transformer.base.shape.vocabulary);
    rows.forEach((row, index) => this.#take(row, next[index]!));
  }

  /** Draws a row's next token and ends the row where it must. */
  #take(row: Row, next: LogitRow): void {
    const { request } = row.job;
    const { logits } = next;
    const token = chooseToken(logits, request.choice, row.random);
    const told = request.scaledLogprobs ? scaledRow(next, request.choice.temperature) : next;
    if (row.topk !== undefined) fillTopkRow(row.topk, row.tokens.length, told);
    row.tokens.push(token);
    row.logprobs.push(told.logits[token]! - told.total);
    const stopped = request.stops(row.tokens);
    if (stopped || row.tokens.length >= request.limit) this.#finish(row, stopped ? 'stop' : 'length');
  }

  #finish(row: Row, stopReason: 'stop' | 'length'): void {
    const { job } = row;
    this.#drop(row);
    job.sequences[row.index] = {
      stopReason,
      tokens: Int32Array.from(row.tokens),
      logprobs: Float32Array.from(row.logprobs),
      ...(row.topk === undefined ? {} : { topkLogprobs: shortenTopkTable(row.topk, row.tokens.length) }),
    };
    if (++job.finished < job.request.numSamples) return;
    job.settled = true;
    job.sampler.release();
    const { scores, hits } = job.prefilled!;
    job.resolve({ sequences: job.sequences, ...scores, promptCacheHitTokens: hits });
  }

  #fail(job: Job, error: Error): void {
    if (job.settled) return;
    job.settled = true;
    const place = this.#waiting.indexOf(job);
    if (place >= 0) this.#waiting.splice(place, 1);
    for (const row of this.#rows) if (row.job === job) this.#drop(row);
    if (job.prefilled !== undefined && job.started < job.request.numSamples) {
      this.#prefixes.release(job.prefilled.prefix);
    }
    job.sampler.release();
    job.reject(error);
  }

  #drop(row: Row): void {
    this.#rows.delete(row);
    this.#reserved -= row.job.floats;
    row.cache.dispose();
  }
}
