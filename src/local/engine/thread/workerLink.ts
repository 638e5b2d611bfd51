import { Worker } from 'node:worker_threads';
import { EngineClosedError } from '../errors.js';
import {
  reviveError,
  type FromWorker,
  type ToWorker,
  type WorkerMethod,
  type WorkerMethods,
  type WorkerSetup,
} from './messages.js';
import type { BaseModelInfo } from '../types.js';

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The built worker beside this file, or the one that starts from source. */
const workerUrl = () =>
  new URL(import.meta.url.endsWith('.ts') ? './worker.source.mjs' : './worker.js', import.meta.url);

/** The engine's thread as seen from outside: calls go in, promises come out. */
export class WorkerLink {
  readonly baseModels: readonly BaseModelInfo[];
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #keepAlive: boolean;
  #nextId = 0;
  #closed: EngineClosedError | undefined;

  private constructor(worker: Worker, baseModels: readonly BaseModelInfo[], keepAlive: boolean) {
    this.#worker = worker;
    this.baseModels = baseModels;
    this.#keepAlive = keepAlive;
    worker.on('message', (message: FromWorker) => this.#receive(message));
    worker.on('error', (cause: Error) =>
      this.#fail(
        new EngineClosedError(`the engine’s thread failed (${cause.message}): start the service again`, { cause }),
      ),
    );
    worker.on('exit', () =>
      this.#fail(new EngineClosedError('the engine’s thread has ended: start the service again')),
    );
    this.#rest();
  }

  /** Starts the thread; rejects where it cannot load its models. An idle one keeps the process alive only if asked to. */
  static open(workerData: WorkerSetup, keepAlive: boolean): Promise<WorkerLink> {
    // Options of the program are not the thread's: --input-type would end it, and a loader only make it slow.
    const worker = new Worker(workerUrl(), { workerData, name: 'tinker-rx engine', execArgv: [] });
    return new Promise((resolve, reject) => {
      worker.once('error', reject);
      worker.once('message', (message: FromWorker) => {
        worker.off('error', reject);
        if (message.type === 'ready') resolve(new WorkerLink(worker, message.baseModels, keepAlive));
        else reject(new Error(`unexpected first message ${message.type}`));
      });
    });
  }

  get failure(): Error | undefined {
    return this.#closed;
  }

  /** Sends a call at once; calls arrive in the order they were made. The buffers `moved` are given away instead of copied. */
  call<A>(method: WorkerMethod, args: WorkerMethods[WorkerMethod], moved: readonly ArrayBuffer[] = []): Promise<A> {
    return this.start<A>(method, args, moved).result;
  }

  /** As {@link call}, with a way to ask the worker to give up. */
  start<A>(
    method: WorkerMethod,
    args: WorkerMethods[WorkerMethod],
    moved: readonly ArrayBuffer[] = [],
  ): { readonly result: Promise<A>; readonly cancel: () => void } {
    if (this.#closed !== undefined) return { result: Promise.reject(this.#closed), cancel: () => {} };
    const id = this.#nextId++;
    const result = new Promise<A>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
    });
    this.#worker.ref();
    this.#send({ type: 'call', id, method, args }, moved);
    return { result, cancel: () => this.#send({ type: 'cancel', id }) };
  }

  async close(): Promise<void> {
    this.#fail(new EngineClosedError('the engine was closed'));
    await this.#worker.terminate();
  }

  #send(message: ToWorker, moved: readonly ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, moved);
  }

  #receive(message: FromWorker): void {
    if (message.type === 'ready') return;
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    this.#rest();
    if (message.type === 'result') waiting?.resolve(message.value);
    else waiting?.reject(reviveError(message.name, message.message, message.stack));
  }

  #rest(): void {
    if (this.#waiting.size === 0 && !this.#keepAlive) this.#worker.unref();
  }

  #fail(error: EngineClosedError): void {
    this.#closed ??= error;
    for (const { reject } of this.#waiting.values()) reject(this.#closed);
    this.#waiting.clear();
  }
}
