import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Controls } from './controls/controls.js';
import { routesOf } from './endpoints/routes.js';
import { Engine } from './engine/index.js';
import type { EnginePort } from './enginePort.js';
import { credentialOf, randomApiKey } from './http/auth.js';
import { Router } from './http/router.js';
import { HttpServer } from './http/server.js';
import { FILES } from './http/signedUrls.js';
import { resolveOptions, type LocalTinkerOptions, type ResolvedOptions } from './options.js';
import { lockFolder } from '../support/files/lockFolder.js';
import { openService, type LocalService } from './service/localService.js';
import { openModel, type ModelSource } from './weights/openModel.js';
import type { OpenedModel } from './weights/OpenedModel.js';

/**
 * The Tinker service on this machine: a small model that really learns, behind the real protocol.
 *
 * @example
 * const local = await LocalTinker.start();
 * const service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey });
 * // …
 * await local.close();
 */
export class LocalTinker {
  readonly #service: LocalService;
  readonly #shutDown: () => Promise<void>;
  #closed: Promise<void> | undefined;
  readonly #apiKey: string;

  private constructor(
    /** What to give as base URL. */
    readonly url: string,
    apiKey: string,
    /** Where checkpoints and records are. */
    readonly dataFolder: string,
    service: LocalService,
    shutDown: () => Promise<void>,
  ) {
    this.#apiKey = apiKey;
    this.#service = service;
    this.#shutDown = shutDown;
  }

  /**
   * Starts the engine, opens the data folder and listens.
   *
   * @throws RangeError for an option that is out of range; the system's error when the port is taken; an Error naming file, field or tensor
   * for a model that cannot be loaded.
   */
  static async start(options: LocalTinkerOptions = {}): Promise<LocalTinker> {
    const resolved = resolveOptions(options);
    const apiKey = resolved.apiKey ?? randomApiKey();
    const { dataFolder, leaveFolder } = await prepareFolder(resolved.data);
    const { engine, opened } = await startEngine(resolved).catch(async (error: unknown) => {
      await leaveFolder();
      throw error;
    });
    const stopEngine = async () => {
      if (resolved.engine === undefined) await engine.close();
      await leaveFolder();
    };
    const service = await openService({ options: resolved, engine, apiKey, dataFolder, opened }).catch(
      async (error: unknown) => {
        await stopEngine();
        throw error;
      },
    );
    const { controls } = service;
    const server = new HttpServer({
      host: resolved.host,
      port: resolved.port,
      maxRequestBytes: resolved.maxRequestBytes,
      requestTimeoutMs: resolved.requestTimeoutMs,
      router: new Router(routesOf(service)),
      authorize: (context) =>
        (context.method === 'GET' && context.endpoint.startsWith(`${FILES}/`)) ||
        // Nothing of a body is read before the address is known to be a signed one.
        (context.method === 'PUT' && service.urls.isSigned(context)) ||
        service.auth.accepts(credentialOf(context)),
      latencyMs: (endpoint) =>
        typeof controls.latencyMs === 'number' ? controls.latencyMs : controls.latencyMs(endpoint),
      nextFault: (method, endpoint) => controls.injector.next(method, endpoint),
      onPause: ({ forMs, queueState, reason }) => {
        controls.pause(queueState, reason);
        setTimeout(() => controls.resume(), forMs).unref();
      },
      onRequest: resolved.onRequest,
      onResponse: resolved.onResponse,
      writeError: (error) => service.dialect.error(error),
    });
    const shutDown = async () => {
      await server.close();
      await service.close();
      await stopEngine();
    };
    try {
      const { port } = await server.listen();
      const host = resolved.host.includes(':') ? `[${resolved.host}]` : resolved.host;
      return new LocalTinker(`http://${host}:${port}`, apiKey, dataFolder, service, shutDown);
    } catch (error) {
      await shutDown();
      throw error;
    }
  }

  /** The key that every request needs. */
  get apiKey(): string {
    return this.#apiKey;
  }

  /** The names of the models that can be trained and sampled. */
  get baseModels(): readonly string[] {
    return this.#service.engine.baseModels.map(({ name }) => name);
  }

  /** Text to print at the start: where it listens, the key, the models, and how to point an SDK at it. */
  describe(): string {
    const models = this.#service.engine.baseModels.map(
      ({ name, contextLength, parameters }) => `${name} (${parameters} parameters, context ${contextLength})`,
    );
    return [
      `Tinker service at ${this.url}`,
      `  models  ${models.join(', ')}`,
      `  data    ${this.dataFolder}`,
      `  clock   ${this.controls.clockMs === 0 ? 'off' : `${this.controls.clockMs} ms`}`,
      '',
      `export TINKER_BASE_URL=${this.url}`,
      `export TINKER_API_KEY=${this.#apiKey}`,
    ].join('\n');
  }

  /** Flags, clock, latency, faults, quotas and pauses, to be turned while the service runs. */
  get controls(): Controls {
    return this.#service.controls;
  }

  /** Cuts every connection, ends the engine, and removes the data folder if it was a temporary one. Safe to repeat. */
  close(): Promise<void> {
    return (this.#closed ??= this.#shutDown());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Opens the models, loads them into a new engine, and closes their files. */
async function startEngine(options: ResolvedOptions): Promise<{
  readonly engine: EnginePort;
  readonly opened: readonly OpenedModel[];
}> {
  const { engine, models, threads, memoryBytes, onLoading: onProgress } = options;
  if (engine !== undefined) return { engine, opened: [] };
  const opened: OpenedModel[] = [];
  try {
    for (const source of models) opened.push(await openModel(await locate(source)));
    const names = opened.map(({ shape }) => shape.name);
    const twice = names.find((name, index) => names.indexOf(name) < index);
    if (twice !== undefined) throw new RangeError(`two models are named ${twice}: give one of them another name`);
    return { engine: await Engine.start({ models: opened, threads, memoryBytes, onProgress }), opened };
  } finally {
    await Promise.all(opened.map((model) => model.close()));
  }
}

/** A text is a path of this machine where there is one; else it may be a repository of the hub, whose code is loaded only then. */
async function locate(source: string | ModelSource): Promise<ModelSource> {
  if (typeof source !== 'string') return source;
  if (existsSync(source)) return { path: source };
  const { fetchModel, isRepository } = await import('./weights/fetchModel.js');
  return isRepository(source) ? fetchModel(source) : { path: source };
}

async function prepareFolder(
  data: string | undefined,
): Promise<{ readonly dataFolder: string; readonly leaveFolder: () => Promise<void> }> {
  if (data !== undefined) {
    const dataFolder = resolve(data);
    return { dataFolder, leaveFolder: await lockFolder(dataFolder) };
  }
  const dataFolder = await mkdtemp(join(tmpdir(), 'tinker-rx-'));
  return { dataFolder, leaveFolder: () => rm(dataFolder, { recursive: true, force: true }) };
}
