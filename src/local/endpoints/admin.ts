import { BillingUsageResponse, CheckpointStorageUsageResponse } from '../../wire/index.js';
import { credentialOf, LOCAL_EMAIL, LOCAL_ORGANIZATION, LOCAL_USER } from '../http/auth.js';
import { HttpError } from '../http/httpError.js';
import { json, noContent, type Reply } from '../http/reply.js';
import type { RequestContext } from '../http/requestContext.js';
import { del, get, post, type Route } from '../http/router.js';
import type { LocalService } from '../service/localService.js';
import { GIGABYTE, type StoragePeriod, type UsageBucket } from '../service/usageLedger.js';
import { sizeBytes } from '../store/manifest.js';
import { flagsOf } from './session.js';

const HOUR_MS = 3_600_000;
const LONGEST_MS = 14 * 24 * HOUR_MS;
const RESOURCES: Readonly<Record<string, string | undefined>> = {
  all: undefined,
  checkpoints: 'checkpoint',
  projects: 'project',
  teams: 'team',
  organizations: 'organization',
};

/** Who you are, what was done and what was used. */
export const adminRoutes = (service: LocalService): Route[] => [
  post('auth/token', () => {
    if (!flagsOf(service).pjwtAuthEnabled) throw new HttpError(404, 'tokens are not enabled here');
    return json({ jwt: service.auth.issueToken() });
  }),
  get('whoami', (context) => {
    const claims = service.auth.claimsOf(credentialOf(context) ?? '');
    const { sub = LOCAL_USER, org_id: organization = LOCAL_ORGANIZATION, email = LOCAL_EMAIL } = claims ?? {};
    return json({ user_urn: sub, org_urn: `tml:organization:${organization}`, email });
  }),
  get('auth/apikey/me', () => {
    const details = { org_details: { name: LOCAL_ORGANIZATION }, user_details: { email: LOCAL_EMAIL } };
    return json({ key_id: 1, id: '1', name: 'local', note: 'the key of this service', details, ...details });
  }),
  del('auth/apikey/me', () => {
    service.auth.revoke();
    return noContent();
  }),
  get('audit', (context) => {
    const type = context.query.get('event_type') ?? 'all';
    const day = context.query.get('day') ?? undefined;
    if (!Object.hasOwn(RESOURCES, type))
      throw new HttpError(422, `event_type must be one of ${Object.keys(RESOURCES).join(', ')}`);
    if (day !== undefined && !/^\d{4}-\d{2}-\d{2}$/.test(day)) throw new HttpError(422, 'day must be YYYY-MM-DD');
    return json({ entries: service.audit.list(RESOURCES[type], day) });
  }),
  get('billing/usage/events', (context) => usageEvents(service, context)),
  get('billing/usage/checkpoints/current', (context) => storageUsage(service, context.query.get('project_id'))),
];

function usageEvents(service: LocalService, context: RequestContext): Reply {
  const [from, to] = [hour(context, 'starting_on'), hour(context, 'ending_before')];
  if (to <= from || to - from > LONGEST_MS) throw new HttpError(400, 'the period must be 1 hour to 14 days long');
  if (from > service.now()) throw new HttpError(400, 'starting_on is in the future');
  const buckets = service.usage.between(from, to, keptNow(service));
  const sessionIds = new Set(buckets.flatMap(({ sessionId }) => (sessionId === undefined ? [] : [sessionId])));
  return json({
    ...BillingUsageResponse.encode({ data: buckets.map((bucket) => toEvent(service, bucket)), sessions: {} }),
    sessions: Object.fromEntries(
      Array.from(sessionIds, (id) => {
        const metadata = service.sessions.find(id)?.userMetadata;
        return [id, metadata === undefined ? {} : { user_metadata: metadata }];
      }),
    ),
  });
}

function hour(context: RequestContext, name: string): number {
  const time = Date.parse(context.query.get(name) ?? '');
  if (Number.isNaN(time)) throw new HttpError(422, `${name} must be an RFC 3339 time`);
  if (time % HOUR_MS !== 0) throw new HttpError(400, `${name} must be a full UTC hour`);
  return time;
}

/** Quantities only: nothing here has a price. */
function toEvent(service: LocalService, { startMs, baseModel, sessionId, kind, amount }: UsageBucket) {
  const projectId = sessionId === undefined ? undefined : service.sessions.find(sessionId)?.projectId;
  return {
    bucketStart: new Date(startMs).toISOString(),
    bucketEnd: new Date(startMs + HOUR_MS).toISOString(),
    userId: LOCAL_USER,
    ...(baseModel === undefined ? {} : { baseModel }),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(projectId === undefined ? {} : { projectId }),
    eventInfo: {
      ...kind,
      ...(kind.type === 'checkpoint'
        ? { count: amount }
        : kind.type === 'storage'
          ? { gigabyteHours: amount }
          : { tokenCount: amount }),
    },
  };
}

/** What every checkpoint that is still there has been keeping. */
function keptNow(service: LocalService): StoragePeriod[] {
  return service.checkpoints.list().map((manifest) => ({
    fromMs: Date.parse(manifest.createdAt),
    toMs: service.now(),
    sizeBytes: sizeBytes(manifest),
    baseModel: manifest.baseModel,
    sessionId: service.runs.get(manifest.runId)?.sessionId,
  }));
}

function storageUsage(service: LocalService, onlyProject: string | null): Reply {
  const projects = new Map<string, { count: number; bytes: number }>();
  for (const manifest of service.checkpoints.list()) {
    const sessionId = service.runs.get(manifest.runId)?.sessionId;
    const project = (sessionId === undefined ? undefined : service.sessions.find(sessionId)?.projectId) ?? '';
    if (onlyProject !== null && project !== onlyProject) continue;
    const sum = projects.get(project) ?? { count: 0, bytes: 0 };
    projects.set(project, { count: sum.count + 1, bytes: sum.bytes + sizeBytes(manifest) });
  }
  return json(
    CheckpointStorageUsageResponse.encode({
      data: Array.from(projects, ([projectId, { count, bytes }]) => ({
        ...(projectId === '' ? {} : { projectId }),
        orgUserUrn: LOCAL_USER,
        userEmail: LOCAL_EMAIL,
        checkpointCount: count,
        sizeBytes: bytes,
        sizeGigabytes: bytes / GIGABYTE,
      })),
    }),
  );
}
