import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Dials } from './dials/dials.js';
import { routesOf } from './endpoints/routes.js';
import { Engine } from './engine/index.js';
import { credentialOf, randomApiKey } from './http/auth.js';
import { Router } from './http/router.js';
import { HttpServer } from './http/server.js';
import { FILES } from './http/signedUrls.js';
import { resolveOptions, type LocalTinkerOptions } from './options.js';
import { lockFolder } from './store/folderLock.js';
import { openService, type LocalService } from './service/localService.js';

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
   * @throws RangeError for an option that is out of range; the system's error when the port is taken.
   */
  static async start(options: LocalTinkerOptions = {}): Promise<LocalTinker> {
    const resolved = resolveOptions(options);
    const apiKey = resolved.apiKey ?? randomApiKey();
    const { dataFolder, leaveFolder } = await prepareFolder(resolved.data);
    const engine = resolved.engine ?? (await Engine.start());
    const stopEngine = async () => {
      if (resolved.engine === undefined) await engine.close();
      await leaveFolder();
    };
    const service = await openService({ options: resolved, engine, apiKey, dataFolder }).catch(
      async (error: unknown) => {
        await stopEngine();
        throw error;
      },
    );
    const { dials } = service;
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
      latencyMs: (endpoint) => (typeof dials.latencyMs === 'number' ? dials.latencyMs : dials.latencyMs(endpoint)),
      nextFault: (method, endpoint) => dials.injector.next(method, endpoint),
      onPause: ({ forMs, queueState, reason }) => {
        dials.pause(queueState, reason);
        setTimeout(() => dials.resume(), forMs).unref();
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
      `  clock   ${this.dials.clockMs === 0 ? 'off' : `${this.dials.clockMs} ms`}`,
      '',
      `export TINKER_BASE_URL=${this.url}`,
      `export TINKER_API_KEY=${this.#apiKey}`,
    ].join('\n');
  }

  /** Flags, clock, latency, faults, quotas and pauses, to be turned while the service runs. */
  get dials(): Dials {
    return this.#service.dials;
  }

  /** Cuts every connection, ends the engine, and removes the data folder if it was a temporary one. Safe to repeat. */
  close(): Promise<void> {
    return (this.#closed ??= this.#shutDown());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

async function prepareFolder(
  data: string | undefined,
): Promise<{ readonly dataFolder: string; readonly leaveFolder: () => Promise<void> }> {
  if (data !== undefined) {
    const dataFolder = resolve(data);
    await mkdir(dataFolder, { recursive: true });
    return { dataFolder, leaveFolder: await lockFolder(dataFolder) };
  }
  const dataFolder = await mkdtemp(join(tmpdir(), 'tinker-rx-'));
  return { dataFolder, leaveFolder: () => rm(dataFolder, { recursive: true, force: true }) };
}
