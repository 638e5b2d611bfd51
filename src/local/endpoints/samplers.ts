import { randomInt } from 'node:crypto';
import { HttpError } from '../http/httpError.js';
import type { LocalService } from '../service/localService.js';
import { SamplingSession } from '../service/samplingSessions.js';
import { samplerSource } from './samplerSource.js';

/** Clients count clones in blocks; this many blocks stay reserved for clients that joined before a restart. */
const CLONES_BEFORE = 1_000_000;

/**
 * The sampler of an id, also one that an earlier process made from a base model or a checkpoint.
 *
 * @throws HttpError 410 if its session is over, else 404, and why it is gone if that is known.
 */
export function findSampler(service: LocalService, id: string): SamplingSession {
  const known = service.samplingSessions.get(id) ?? restoreSampler(service, id);
  if (known !== undefined) return known;
  const name = id.slice(0, 150);
  const session = service.sessions.list().find(({ sessionId }) => id.startsWith(`${sessionId}:`));
  // A finished session explains better than "no such sampler" why its samplers are gone.
  if (session !== undefined) service.sessions.use(session.sessionId);
  if (session === undefined || Date.parse(session.createdAt) >= service.startedAt) {
    throw new HttpError(404, `there is no sampling session ${name}`);
  }
  throw new HttpError(
    404,
    `sampling session ${name} is gone: the service was started again since, and weights saved without a name do not outlive it. ` +
      'Save weights under a name, and make a sampler from their path',
  );
}

function restoreSampler(service: LocalService, id: string): SamplingSession | undefined {
  const record = service.samplerRecords.get(id);
  if (record === undefined) return undefined;
  const source = samplerSource(service, record);
  const clients = randomInt(CLONES_BEFORE, 100 * CLONES_BEFORE);
  const restored = new SamplingSession(id, record.sessionId, source, record.digest, clients);
  service.samplingSessions.set(id, restored);
  return restored;
}

/** Makes a sampler that outlives this process. */
export async function addSampler(
  service: LocalService,
  session: SamplingSession,
  weights: { readonly baseModel?: string | undefined; readonly modelPath?: string | undefined },
): Promise<void> {
  const { id, sessionId, digest } = session;
  service.samplingSessions.set(id, session);
  if (sessionId === undefined) return;
  try {
    await service.samplerRecords.put(id, { version: 1, id, sessionId, digest, ...weights });
  } catch (error) {
    service.samplingSessions.delete(id);
    throw error;
  }
}
