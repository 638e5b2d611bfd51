import { createHash } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { GatewayError } from '../http/GatewayError.js';
import type { SchemaJob, SchemaVerdict } from './schemaWorker.js';

interface Job extends SchemaJob {
  readonly resolve: (wrong: string | undefined) => void;
  readonly reject: (error: Error) => void;
}

const MOST_THREADS = 4;
const MOST_CHARS = 262_144;
const MOST_REFUSED = 1000;

/**
 * Checks JSON by schemas on separate threads: preparing a large schema takes seconds, and a pattern such as
 * `^(a+)+$` may never end. Neither delays other requests. Threads start when they are needed and keep what they have
 * prepared; an idle one does not keep the process alive.
 */
export class SchemaChecker {
  readonly #idle: Worker[] = [];
  readonly #all = new Set<Worker>();
  readonly #waiting: Job[] = [];
  /** Digests of schemas that took too long, so that asking again costs nothing. */
  readonly #refused = new Set<string>();

  constructor(private readonly timeoutMs = 5000) {}

  /** What does not fit; undefined if all does. Rejects with a GatewayError 400 for a schema that cannot be used. */
  check(schema: object, json: string): Promise<string | undefined> {
    const text = JSON.stringify(schema);
    if (text.length > MOST_CHARS) return Promise.reject(unusable(`it has more than ${MOST_CHARS} characters`));
    if (this.#refused.has(digest(text))) return Promise.reject(this.#tooSlow());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ schema: text, json, resolve, reject });
      this.#next();
    });
  }

  /** Ends the threads. */
  async close(): Promise<void> {
    for (const { reject } of this.#waiting.splice(0)) reject(new GatewayError(503, 'this gateway is closing'));
    await Promise.all([...this.#all].map((worker) => worker.terminate()));
  }

  #next(): void {
    if (this.#waiting.length === 0) return;
    const worker = this.#idle.pop();
    if (worker !== undefined) this.#run(worker, this.#waiting.shift()!);
    else if (this.#all.size < MOST_THREADS) this.#start();
  }

  #start(): void {
    // Options of the program are not the thread's: --input-type would end it.
    const worker = new Worker(workerUrl(), { name: 'tinker-rx schemas', execArgv: [] });
    this.#all.add(worker);
    worker.once('message', () => this.#rest(worker));
    worker.once('error', (cause) => {
      this.#all.delete(worker);
      const failure = new GatewayError(500, `the thread that checks schemas failed: ${cause.message}`);
      for (const { reject } of this.#waiting.splice(0)) reject(failure);
    });
    worker.once('exit', () => this.#all.delete(worker));
  }

  #rest(worker: Worker): void {
    worker.unref();
    this.#idle.push(worker);
    this.#next();
  }

  #run(worker: Worker, job: Job): void {
    worker.ref();
    const end = (): void => {
      clearTimeout(late);
      worker.off('message', verdict).off('exit', gone);
    };
    const verdict = (found: SchemaVerdict): void => {
      end();
      this.#rest(worker);
      if ('unusable' in found) job.reject(unusable(found.unusable));
      else job.resolve(found.wrong);
    };
    const gone = (): void => {
      end();
      job.reject(new GatewayError(503, 'this gateway is closing'));
    };
    const late = setTimeout(() => {
      end();
      this.#refuse(job.schema);
      this.#all.delete(worker);
      job.reject(this.#tooSlow());
      void worker.terminate();
      this.#next();
    }, this.timeoutMs);
    worker.on('message', verdict).on('exit', gone);
    const { schema, json } = job;
    worker.postMessage({ schema, json } satisfies SchemaJob);
  }

  #refuse(schema: string): void {
    if (this.#refused.size >= MOST_REFUSED) this.#refused.clear();
    this.#refused.add(digest(schema));
  }

  #tooSlow(): GatewayError {
    return unusable(`checking an answer by it takes longer than ${this.timeoutMs} ms`);
  }
}

const unusable = (why: string): GatewayError => new GatewayError(400, `the JSON schema cannot be used: ${why}`);
const digest = (text: string): string => createHash('sha256').update(text).digest('base64');

/** The built worker beside this file, or the one that starts from source. */
const workerUrl = (): URL =>
  new URL(import.meta.url.endsWith('.ts') ? './schemaWorker.source.mjs' : './schemaWorker.js', import.meta.url);
