import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Dialect } from '../dialect/dialect.js';
import { skyrlDialect } from '../dialect/skyrlDialect.js';
import { tinkerDialect } from '../dialect/tinkerDialect.js';
import { Dials } from '../dials/dials.js';
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
import { writeTokenizer } from '../store/tokenizerFiles.js';
import { AuditLog } from './auditLog.js';
import { Idempotency } from './idempotency.js';
import { Models } from './models.js';
import { isRunRecord, type RunRecord } from './runs.js';
import { SamplerPool } from './samplerPool.js';
import { isSamplerRecord, SamplingSessions, type SamplerRecord } from './samplingSessions.js';
import { isSessionRecord, Sessions, type SessionRecord } from './sessions.js';
import { Traces } from './traces.js';
import { Uploads } from './uploads.js';
import { UsageLedger } from './usageLedger.js';

/** Everything the endpoints share. */
export interface LocalService {
  readonly options: ResolvedOptions;
  readonly dialect: Dialect;
  readonly now: () => number;
  /** For durations: see {@link steadyClock}. */
  readonly steadyNow: () => number;
  readonly startedAt: number;
  readonly engine: EnginePort;
  readonly auth: Authenticator;
  readonly dials: Dials;
  readonly clock: LockstepClock;
  readonly futures: FutureStore;
  readonly sessions: Sessions;
  readonly runs: JsonRecords<RunRecord>;
  readonly models: Models;
  readonly samplingSessions: SamplingSessions;
  readonly samplers: SamplerPool;
  /** Samplers that outlive this process, by id. */
  readonly samplerRecords: JsonRecords<SamplerRecord>;
  readonly checkpoints: CheckpointStore;
  readonly ephemeral: EphemeralStates;
  readonly urls: SignedUrls;
  readonly uploads: Uploads;
  readonly usage: UsageLedger;
  readonly audit: AuditLog;
  readonly traces: Traces;
  readonly idempotency: Idempotency;
  /** Uploaded losses by their id. */
  readonly customLosses: Map<string, CustomLoss>;
  /** How to stop the samples that are running or waiting. */
  readonly cancels: Map<string, AbortController>;
  /** A folder with the models' tokenizer as Hugging Face lays it out; written when it is first asked for. */
  tokenizerFolder(): Promise<string>;
  /** An id for a sampled sequence that no other sequence has. */
  nextSequenceId(): string;
  makeLane(modelId: string): Lane;
  /** Marks a run as used now. */
  touchRun(runId: string): void;
  lastRequestAt(run: RunRecord): string;
  /** The project of a request, or the default one. @throws HttpError 422 for a name that is not allowed. */
  checkProject(projectId: string | undefined): string;
  /** Writes into the audit log what was done to a checkpoint. */
  noteCheckpoint(action: CheckpointAction, manifest: Manifest, details?: Readonly<Record<string, unknown>>): void;
  /** Stops the timers and waits for what is being written. */
  close(): Promise<void>;
}

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
}

/** Opens the data folder and puts the parts together. */
export async function openService({ options, engine, apiKey, dataFolder }: ServiceParts): Promise<LocalService> {
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
  const dials = new Dials(options, clock, () => futures.notifyAll());
  const models = new Models();
  const customLosses = new Map<string, CustomLoss>();
  const samplingSessions = new SamplingSessions();
  const samplers = new SamplerPool(engine, options.maxResidentSamplers);
  const sessions = new Sessions({
    records: sessionRecords,
    now,
    steadyNow,
    newId: () => dialect.sessionId(),
    ttlMs: options.sessionTtlMs,
    onEnd: (sessionId) => {
      for (const { modelId, lane } of models.ofSession(sessionId)) {
        models.remove(modelId);
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
      for (const { id, source } of samplingSessions.ofSession(sessionId)) {
        samplingSessions.remove(id);
        void ephemeral.forget(id).catch(() => undefined);
        samplers.release(source.key);
      }
    },
  });
  const auth = new Authenticator(apiKey, options.jwtTtlMs, now);
  const lastRequests = new Map<string, string>();
  let tokenizer: Promise<string> | undefined;
  return {
    options,
    dialect,
    now,
    steadyNow,
    startedAt: now(),
    engine,
    auth,
    urls: new SignedUrls(auth, options.urlTtlMs, now),
    uploads: new Uploads(MOST_UPLOADS, now),
    usage,
    audit,
    traces,
    dials,
    clock,
    futures,
    sessions,
    runs,
    models,
    samplingSessions,
    samplers,
    samplerRecords,
    checkpoints,
    ephemeral,
    idempotency: new Idempotency(),
    customLosses,
    cancels: new Map(),
    tokenizerFolder: () => (tokenizer ??= writeTokenizer(join(dataFolder, 'tokenizer'))),
    nextSequenceId: () => `seq-${randomUUID()}`,
    makeLane: (modelId) => new Lane(modelId, clock.wake, dialect.order),
    touchRun: (runId) => void lastRequests.set(runId, new Date(now()).toISOString()),
    lastRequestAt: ({ runId, lastRequestAt }) => lastRequests.get(runId) ?? lastRequestAt,
    checkProject: (projectId = DEFAULT_PROJECT) => {
      if (!/^[A-Za-z0-9_.:-]{1,128}$/.test(projectId)) throw new HttpError(422, 'not a project id');
      return projectId;
    },
    noteCheckpoint: (action, manifest, details = {}) => {
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
    async close() {
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
