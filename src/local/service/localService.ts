import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { Dials } from '../dials/dials.js';
import type { EnginePort } from '../enginePort.js';
import { Authenticator } from '../http/auth.js';
import type { ResolvedOptions } from '../options.js';
import { FutureStore } from '../queue/futureStore.js';
import { Lane } from '../queue/lane.js';
import { LockstepClock } from '../queue/lockstepClock.js';
import { CheckpointStore } from '../store/checkpointStore.js';
import { EphemeralStates } from '../store/ephemeralStates.js';
import { JsonRecords } from '../store/jsonRecords.js';
import { Idempotency } from './idempotency.js';
import { Models } from './models.js';
import { isRunRecord, type RunRecord } from './runs.js';
import { SamplerPool } from './samplerPool.js';
import { SamplingSessions } from './samplingSessions.js';
import { isSessionRecord, Sessions, type SessionRecord } from './sessions.js';

/** Everything the endpoints share. */
export interface LocalService {
  readonly options: ResolvedOptions;
  readonly now: () => number;
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
  readonly checkpoints: CheckpointStore;
  readonly ephemeral: EphemeralStates;
  readonly idempotency: Idempotency;
  /** How to stop the samples that are running or waiting. */
  readonly cancels: Map<string, AbortController>;
  /** An id for a sampled sequence that no other sequence has. */
  nextSequenceId(): string;
  makeLane(modelId: string): Lane;
  /** Stops the timers and waits for what is being written. */
  close(): Promise<void>;
}

export interface ServiceParts {
  readonly options: ResolvedOptions;
  readonly engine: EnginePort;
  readonly apiKey: string;
  readonly dataFolder: string;
}

/** Opens the data folder and puts the parts together. */
export async function openService({ options, engine, apiKey, dataFolder }: ServiceParts): Promise<LocalService> {
  const now = () => Date.now();
  const runs = await JsonRecords.open(join(dataFolder, 'runs'), isRunRecord, (run) => run.runId);
  const sessionRecords = await JsonRecords.open<SessionRecord>(
    join(dataFolder, 'sessions'),
    isSessionRecord,
    (session) => session.sessionId,
  );
  const checkpoints = await CheckpointStore.open(join(dataFolder, 'checkpoints'), now);
  const ephemeral = await EphemeralStates.open(join(dataFolder, 'ephemeral'));
  const futures = new FutureStore({ keepMs: options.futureTtlMs, now });
  const clock = new LockstepClock({ clockMs: options.clockMs, now });
  const dials = new Dials(options, clock, () => futures.notifyAll());
  const models = new Models();
  const samplingSessions = new SamplingSessions();
  const samplers = new SamplerPool(engine, options.maxResidentSamplers);
  const sessions = new Sessions({
    records: sessionRecords,
    now,
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
      for (const { id, source } of samplingSessions.ofSession(sessionId)) {
        samplingSessions.remove(id);
        void ephemeral.forget(id).catch(() => undefined);
        samplers.release(source.key);
      }
    },
  });
  return {
    options,
    now,
    engine,
    auth: new Authenticator(apiKey, options.jwtTtlMs, now),
    dials,
    clock,
    futures,
    sessions,
    runs,
    models,
    samplingSessions,
    samplers,
    checkpoints,
    ephemeral,
    idempotency: new Idempotency(),
    cancels: new Map(),
    nextSequenceId: () => `seq-${randomUUID()}`,
    makeLane: (modelId) => new Lane(modelId, clock.wake, options.dialect === 'skyrl' ? 'arrival' : 'seq_id'),
    async close() {
      sessions.close();
      clock.close();
      await Promise.all([checkpoints.flush(), runs.flush(), sessionRecords.flush()]);
    },
  };
}
