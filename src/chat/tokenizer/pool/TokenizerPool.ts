import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { from, lastValueFrom, map, mergeMap, Observable, reduce, type Subscriber } from 'rxjs';
import { checkAtLeast } from '../../../support/checks.js';
import type { EncodeAnswer, EncodeRequest } from './encodeWorker.js';
import { recipeOf, type TokenizerRecipe } from './recipe.js';
import type { Tokenizer } from '../Tokenizer.js';
import { TokenizerError } from '../TokenizerError.js';

/** Options of a {@link TokenizerPool}. */
export interface TokenizerPoolOptions {
  /** Number of threads, at least 1. Default: one less than the machine has cores. */
  readonly size?: number;
  /** Characters sent to a thread at a time, at least 1. Default 65,536. */
  readonly batchChars?: number;
  /** Where a bundler put the worker's file. Default: `encodeWorker.js` beside this module. */
  readonly workerUrl?: URL;
}

/** Texts that `encodeAll` has queued at once: sending looks at all of them. */
const MOST_QUEUED = 1024;

interface Job {
  readonly text: string;
  readonly subscriber: Subscriber<Int32Array>;
}

/** A thread and what it is working on. */
interface Thread {
  readonly worker: Worker;
  jobs: readonly Job[];
}

/**
 * Encodes texts on worker threads, each with its own copy of a tokenizer.
 *
 * Texts that wait are sent together, so that short ones do not pay for a message each. An idle pool does not keep the process alive.
 *
 * ```ts
 * const pool = new TokenizerPool(await loadTokenizer('Qwen/Qwen3-8B'));
 * const tokens = await pool.encodeAll(texts); // in order
 * rows$.pipe(concatMapAhead((row) => pool.encode(row.text), { ahead: 1024 })); // in order, a bounded number ahead
 * ```
 */
export class TokenizerPool implements AsyncDisposable {
  /** Number of threads. */
  readonly size: number;
  readonly #recipe: TokenizerRecipe;
  readonly #batchChars: number;
  readonly #workerUrl: URL;
  readonly #threads: Thread[] = [];
  #queue: Job[] = [];
  #isScheduled = false;
  #failure: TokenizerError | undefined;

  /** @throws TokenizerError for a tokenizer that is not this library's own and so cannot be made again in a thread. */
  constructor(tokenizer: Tokenizer, options: TokenizerPoolOptions = {}) {
    const { size = Math.max(1, availableParallelism() - 1), batchChars = 65_536 } = options;
    checkAtLeast({ size, batchChars }, 1);
    const recipe = recipeOf(tokenizer);
    if (recipe === undefined) {
      throw new TokenizerError(
        `${tokenizer.id} is not a tokenizer of this library: encode with it directly, without a pool`,
      );
    }
    this.size = Math.floor(size);
    this.#recipe = recipe;
    this.#batchChars = batchChars;
    this.#workerUrl = options.workerUrl ?? workerUrl();
    if (this.#workerUrl.protocol === 'file:' && !existsSync(fileURLToPath(this.#workerUrl))) {
      throw new TokenizerError(`the worker's file ${this.#workerUrl.href} does not exist: pass workerUrl`);
    }
  }

  /**
   * The tokens of one text. Cold: it is queued on subscribe. Errors with a `TokenizerError` when the thread fails or the pool is closed;
   * unsubscribing takes a text that still waits out of the queue.
   */
  encode(text: string): Observable<Int32Array> {
    return new Observable((subscriber) => {
      if (this.#failure !== undefined) return subscriber.error(this.#failure);
      const job: Job = { text, subscriber };
      this.#queue.push(job);
      this.#schedule();
      return () => {
        const place = this.#queue.indexOf(job);
        if (place >= 0) this.#queue.splice(place, 1);
      };
    });
  }

  /** The tokens of all texts, in order. */
  encodeAll(texts: Iterable<string>): Promise<Int32Array[]> {
    const encoded = from(texts).pipe(
      mergeMap((text, index) => this.encode(text).pipe(map((tokens) => ({ index, tokens }))), MOST_QUEUED),
      reduce<{ readonly index: number; readonly tokens: Int32Array }, Int32Array[]>((all, { index, tokens }) => {
        all[index] = tokens;
        return all;
      }, []),
    );
    return lastValueFrom(encoded);
  }

  /** Ends the threads. What still waits errors. */
  async close(): Promise<void> {
    this.#fail(new TokenizerError('the tokenizer pool is closed'));
    await Promise.all(this.#threads.splice(0).map(({ worker }) => worker.terminate()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Sends once the caller is done subscribing, so that a burst of texts is shared out evenly. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#send();
    });
  }

  #send(): void {
    if (this.#failure !== undefined) return;
    while (this.#threads.length < Math.min(this.size, this.#threads.filter(isBusy).length + this.#queue.length))
      this.#start();
    const idle = this.#threads.filter((thread) => !isBusy(thread));
    let chars = this.#queue.reduce((sum, { text }) => sum + text.length, 0);
    idle.forEach((thread, index) => {
      const share = Math.min(this.#batchChars, Math.ceil(chars / (idle.length - index)));
      let taken = 0;
      let count = 0;
      while (count < this.#queue.length && (count === 0 || taken < share)) taken += this.#queue[count++]!.text.length;
      chars -= taken;
      if (count > 0) this.#post(thread, this.#queue.splice(0, count));
    });
  }

  #post(thread: Thread, jobs: readonly Job[]): void {
    thread.jobs = jobs;
    thread.worker.ref();
    const request: EncodeRequest = { texts: jobs.map(({ text }) => text) };
    thread.worker.postMessage(request);
  }

  #start(): void {
    // Options of the program are not the thread's: --input-type would end it, and a loader only make it slow.
    const options = { workerData: this.#recipe, name: 'tinker-rx tokenizer', execArgv: [] };
    const worker = new Worker(this.#workerUrl, options);
    const thread: Thread = { worker, jobs: [] };
    worker.unref();
    worker.on('message', (answer: EncodeAnswer) => this.#settle(thread, answer));
    worker.on('error', (cause) =>
      this.#fail(new TokenizerError(`a tokenizer thread failed: ${cause.message}`, { cause })),
    );
    worker.on('exit', (code) => {
      if (this.#failure === undefined) this.#fail(new TokenizerError(`a tokenizer thread ended with code ${code}`));
    });
    this.#threads.push(thread);
  }

  #settle(thread: Thread, answer: EncodeAnswer): void {
    const { jobs } = thread;
    thread.jobs = [];
    thread.worker.unref();
    // Sending comes first, so that the thread works on while the tokens are handed out.
    this.#send();
    if ('error' in answer) {
      const error = new TokenizerError(`a tokenizer thread failed: ${answer.error}`);
      for (const { subscriber } of jobs) subscriber.error(error);
      return;
    }
    let start = 0;
    jobs.forEach(({ subscriber }, index) => {
      const end = answer.ends[index]!;
      // A copy, so that one kept text does not hold the tokens of all those it was sent with.
      subscriber.next(answer.tokens.slice(start, end));
      subscriber.complete();
      start = end;
    });
  }

  #fail(error: TokenizerError): void {
    this.#failure ??= error;
    const jobs = [...this.#threads.flatMap((thread) => thread.jobs), ...this.#queue];
    this.#queue = [];
    for (const thread of this.#threads) thread.jobs = [];
    for (const { subscriber } of jobs) subscriber.error(error);
  }
}

/** The built worker beside this file, or the one that starts from source. */
const workerUrl = (): URL =>
  new URL(import.meta.url.endsWith('.ts') ? './encodeWorker.source.mjs' : './encodeWorker.js', import.meta.url);

const isBusy = ({ jobs }: Thread): boolean => jobs.length > 0;
