import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { skyrlDialect } from '../dialect/skyrlDialect.js';
import { tinkerDialect } from '../dialect/tinkerDialect.js';
import { Controls } from '../controls/controls.js';
import type { LossFunction } from '../engine/types.js';
import type { EnginePort } from '../enginePort.js';
import { Authenticator, LOCAL_USER } from '../http/auth.js';
import { HttpError } from '../http/httpError.js';
import { SignedUrls } from '../http/signedUrls.js';
import type { ResolvedOptions } from '../options.js';
import { FutureStore } from '../queue/futureStore.js';
import type { LocalFuture } from '../queue/localFuture.js';
import { Lane } from '../queue/lane.js';
import { LockstepClock } from '../queue/lockstepClock.js';
import { CheckpointStore } from '../store/checkpointStore.js';
import { EphemeralStates } from '../store/ephemeralStates.js';
import { JsonRecords } from '../store/jsonRecords.js';
import { steadyClock } from '../../support/steadyClock.js';
import { sizeBytes, tinkerPath, type Manifest } from '../store/manifest.js';
import { Tokenizers } from '../store/tokenizers.js';
import type { OpenedModel } from '../weights/OpenedModel.js';
import { AuditLog } from './auditLog.js';
import { Idempotency } from './idempotency.js';
import type { LocalModel } from './models.js';
import { isRunRecord, type RunRecord } from './runs.js';
import { SamplerPool } from './samplerPool.js';
import { isSamplerRecord, type SamplingSession } from './samplingSessions.js';
import { isSessionRecord, Sessions, type SessionRecord } from './sessions.js';
import { Traces } from './traces.js';
import { Uploads } from './uploads.js';
import { UsageLedger } from './usageLedger.js';

/** Everything the endpoints share. */
export type LocalService = Awaited<ReturnType<typeof openService>>;

export interface CustomLoss {
  readonly sessionId: string;
  /** Of the request that made it. */
  readonly digest: string;
  readonly created: LocalFuture;
  readonly loss: LossFunction;
}

export type CheckpointAction = 'create' | 'read' | 'delete' | 'publish' | 'unpublish' | 'set_ttl' | 'copy';

const DEFAULT_PROJECT = 'default';
const MOST_UPLOADS = 8;

export interface ServiceParts {
  readonly options: ResolvedOptions;
  readonly engine: EnginePort;
  readonly apiKey: string;
  readonly dataFolder: string;
  /** Base models from files; the engine has their weights. */
  readonly opened?: readonly Pick<OpenedModel, 'shape' | 'tokenizerFiles'>[];
}

/** Opens the data folder and puts the parts together. */
// oxlint-disable-next-line typescript/explicit-module-boundary-types -- its type is what LocalService is made of
export async function openService(parts: ServiceParts) {
  const { options, engine, apiKey, dataFolder, opened = [] } = parts;
  const now = () => Date.now();
  const steadyNow = steadyClock(() => performance.timeOrigin + performance.now());
  const dialect = options.dialect === 'skyrl' ? skyrlDialect : tinkerDialect(options.tryAgainAs);
  const runs = await JsonRecords.open(join(dataFolder, 'runs'), isRunRecord, (run) => run.runId);
  const sessionRecords = await JsonRecords.open<SessionRecord>(
    join(dataFolder, 'sessions'),
    isSessionRecord,
    (session) => session.sessionId,
  );
  const checkpoints = await CheckpointStore.open(join(dataFolder, 'checkpoints'), now);
  const ephemeral = await EphemeralStates.open(join(dataFolder, 'ephemeral'), options.maxUnnamedSamplers);
  const samplerRecords = await JsonRecords.open(join(dataFolder, 'samplers'), isSamplerRecord, (sampler) => sampler.id);
  const futures = new FutureStore({
    keepMs: options.futureTtlMs,
    keepBytes: options.maxResultBytes,
    now: steadyNow,
    plainIds: options.dialect === 'skyrl',
  });
  const usage = await UsageLedger.open(join(dataFolder, 'usage.json'), now);
  const audit = await AuditLog.open(join(dataFolder, 'audit.jsonl'), now);
  const traces = new Traces();
  const clock = new LockstepClock({
    clockMs: options.clockMs,
    now: steadyNow,
    onRun: ({ future: { owner, requestId, createdAt, state } }, cycle, startedAt, endedAt) => {
      const { sessionId, modelId, requestType } = owner;
      if (sessionId === undefined || modelId === undefined) return;
      const times = { queuedAt: createdAt, startedAt, endedAt };
      traces.add(sessionId, {
        name: requestType,
        track: modelId,
        requestId,
        ...times,
        cycle,
        ok: state.type === 'finished',
      });
    },
  });
  const controls = new Controls(options, clock, () => futures.notifyAll());
  const models = new Map<string, LocalModel>();
  const customLosses = new Map<string, CustomLoss>();
  const samplingSessions = new Map<string, SamplingSession>();
  const samplers = new SamplerPool(engine, options.maxResidentSamplers);
  const sessions = new Sessions({
    records: sessionRecords,
    now,
    steadyNow,
    newId: () => dialect.sessionId(),
    ttlMs: options.sessionTtlMs,
    onEnd: (sessionId) => {
      for (const { modelId, lane, ...model } of models.values()) {
        if (model.sessionId !== sessionId) continue;
        models.delete(modelId);
        // Work that was accepted still runs; the model goes after it.
        lane.retire({
          future: futures.create({ requestType: 'UnloadModel' }),
          run: async () => {
            await engine.disposeModel(modelId);
            return { type: 'json', value: {} };
          },
        });
      }
      for (const [lossId, loss] of customLosses) if (loss.sessionId === sessionId) customLosses.delete(lossId);
      for (const sampler of samplerRecords.values()) {
        if (sampler.sessionId === sessionId) void samplerRecords.delete(sampler.id).catch(() => undefined);
      }
      for (const { id, source, ...sampler } of samplingSessions.values()) {
        if (sampler.sessionId !== sessionId) continue;
        samplingSessions.delete(id);
        void ephemeral.forget(id).catch(() => undefined);
        samplers.release(source.key);
      }
    },
  });
  const auth = new Authenticator(apiKey, options.jwtTtlMs, now);
  const lastRequests = new Map<string, string>();
  const tokenizers = new Tokenizers(join(dataFolder, 'tokenizer'), opened);
  return {
    options,
    dialect,
    now,
    /** For durations: see {@link steadyClock}. */
    steadyNow,
    startedAt: now(),
    engine,
    auth,
    urls: new SignedUrls(auth, options.urlTtlMs, now),
    uploads: new Uploads(MOST_UPLOADS, now),
    usage,
    audit,
    traces,
    controls,
    clock,
    futures,
    sessions,
    runs,
    models,
    samplingSessions,
    samplers,
    /** Samplers that outlive this process, by id. */
    samplerRecords,
    checkpoints,
    ephemeral,
    idempotency: new Idempotency(),
    /** Uploaded losses by their id. */
    customLosses,
    /** How to stop the samples that are running or waiting. */
    cancels: new Map<string, AbortController>(),
    /** A folder with a base model's tokenizer as Hugging Face lays it out; written when it is first asked for. */
    tokenizerFolder: (baseModel: string): Promise<string> => tokenizers.folder(baseModel),
    /** Whether a base model was opened from files, so that its tokenizer comes with it. */
    isOpened: (baseModel: string): boolean => tokenizers.isOpened(baseModel),
    /** An id for a sampled sequence that no other sequence has. */
    nextSequenceId: (): string => `seq-${randomUUID()}`,
    makeLane: (modelId: string): Lane => new Lane(modelId, clock.wake, dialect.order),
    /** Marks a run as used now. */
    touchRun: (runId: string): void => void lastRequests.set(runId, new Date(now()).toISOString()),
    lastRequestAt: ({ runId, lastRequestAt }: RunRecord): string => lastRequests.get(runId) ?? lastRequestAt,
    /** The project of a request, or the default one. @throws HttpError 422 for a name that is not allowed. */
    checkProject: (projectId = DEFAULT_PROJECT): string => {
      if (!/^[A-Za-z0-9_.:-]{1,128}$/.test(projectId)) throw new HttpError(422, 'not a project id');
      return projectId;
    },
    /** Writes into the audit log what was done to a checkpoint. */
    noteCheckpoint: (
      action: CheckpointAction,
      manifest: Manifest,
      details: Readonly<Record<string, unknown>> = {},
    ): void => {
      const path = tinkerPath(manifest);
      const sessionId = runs.get(manifest.runId)?.sessionId;
      const { baseModel } = manifest;
      if (action === 'create' || action === 'copy') usage.record({ type: 'checkpoint' }, 1, { baseModel, sessionId });
      if (action === 'delete') {
        const period = { fromMs: Date.parse(manifest.createdAt), toMs: now(), sizeBytes: sizeBytes(manifest) };
        usage.recordStorage({ ...period, baseModel, sessionId });
      }
      audit.add(`checkpoint_${action}`, {
        event_details: { by: LOCAL_USER, tinker_path: path, ...details },
        model_id: manifest.runId,
        tinker_path: path,
        ...(typeof details['purpose'] === 'string' ? { purpose: details['purpose'] } : {}),
      });
    },
    /** Stops the timers and waits for what is being written. */
    async close(): Promise<void> {
      sessions.close();
      clock.close();
      await Promise.all([
        checkpoints.flush(),
        runs.flush(),
        sessionRecords.flush(),
        samplerRecords.flush(),
        usage.close(),
        audit.flush(),
      ]);
    },
  };
}
