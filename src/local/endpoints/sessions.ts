import type { TypeOf } from 'io-ts';
import { AssignProjectRequest, SessionSearchRequest } from '../../wire/index.js';
import { LOCAL_USER } from '../http/auth.js';
import { HttpError } from '../http/httpError.js';
import { json, noContent } from '../http/reply.js';
import { get, post, put, type Route } from '../http/router.js';
import type { LocalService } from '../service/localService.js';
import type { SessionRecord } from '../service/sessions.js';
import { sizeBytes } from '../store/manifest.js';
import { page } from './page.js';

/** Sessions as records: listed, searched, moved to a project, exported as a timeline. */
export const sessionRecordRoutes = (service: LocalService): Route[] => [
  get('sessions', (context) => {
    const ids = service.sessions.list().map(({ sessionId }) => sessionId);
    return json({ sessions: page(context, ids).items });
  }),
  post('sessions/search', (context) => {
    const request = context.decode(SessionSearchRequest);
    if (request.limit > 200) throw new HttpError(422, 'limit must be from 1 to 200');
    const found = service.sessions.list().filter((session) => matches(request, session) && isAfter(request, session));
    const sessions = found.slice(0, request.limit);
    const last = found.length > sessions.length ? sessions.at(-1) : undefined;
    return json({
      sessions: sessions.map((session) => summaryOf(service, session)),
      ...(last === undefined
        ? {}
        : { next_cursor: { last_created_at: last.createdAt, last_session_id: last.sessionId } }),
    });
  }),
  get('sessions/:id', (context) => {
    const { sessionId, userMetadata, displayName } = service.sessions.get(context.param('id'));
    return json({
      training_run_ids: service.runs
        .values()
        .filter((run) => run.sessionId === sessionId)
        .map(({ runId }) => runId),
      sampler_ids: [...service.samplingSessions.values()].flatMap((sampler) =>
        sampler.sessionId === sessionId ? [sampler.id] : [],
      ),
      user_metadata: userMetadata,
      display_name: displayName,
    });
  }),
  put('sessions/:id/project', async (context) => {
    const projectId = service.checkProject(context.decode(AssignProjectRequest).projectId);
    await service.sessions.assignProject(context.param('id'), projectId);
    service.audit.add('project_session_assign', {
      event_details: { by: LOCAL_USER, session_id: context.param('id'), project_id: projectId },
    });
    return noContent();
  }),
  get('sessions/:id/trace_export', (context) => {
    const { sessionId } = service.sessions.get(context.param('id'));
    const target = { kind: 'trace', sessionId, file: `${sessionId}.json` } as const;
    return json({ status: 'ready', url: service.urls.sign(context.origin, target) });
  }),
];

type Search = TypeOf<typeof SessionSearchRequest>;

function matches(request: Search, session: SessionRecord): boolean {
  const { projectIds, userMetadata, owner, statuses } = request;
  return (
    matchesName(request, session) &&
    (projectIds === undefined || projectIds.includes(session.projectId)) &&
    Object.entries(userMetadata).every(([key, value]) => session.userMetadata?.[key] === value) &&
    (owner.type !== 'user' || owner.ownerUrns.includes(LOCAL_USER)) &&
    (statuses === undefined || statuses.some((status) => matchesStatus(status, session)))
  );
}

/** With an id and a name, a session that has either of them matches. */
function matchesName({ sessionId, displayName }: Search, session: SessionRecord): boolean {
  if (sessionId === undefined && displayName === undefined) return true;
  if (sessionId === session.sessionId) return true;
  const name = session.displayName?.toLowerCase();
  return (
    displayName !== undefined &&
    name !== undefined &&
    displayName
      .toLowerCase()
      .split(/\s+/)
      .every((word) => name.includes(word))
  );
}

function matchesStatus(query: NonNullable<Search['statuses']>[number], { status }: SessionRecord): boolean {
  if (query.type !== status.type) return false;
  if (query.type !== 'client_finished' || query.reasons === undefined) return true;
  return 'reason' in status && query.reasons.some((reason) => reason === status.reason.type);
}

/** Whether a session comes after the cursor in a list that has the newest first. */
function isAfter({ cursor }: Search, { createdAt, sessionId }: SessionRecord): boolean {
  if (cursor === undefined) return true;
  const [created, last] = [Date.parse(createdAt), Date.parse(cursor.lastCreatedAt)];
  return created < last || (created === last && sessionId < cursor.lastSessionId);
}

function summaryOf(service: LocalService, session: SessionRecord): object {
  const { sessionId, createdAt, projectId, status, displayName, userMetadata } = session;
  const checkpoints = service.checkpoints
    .list()
    .filter(({ runId }) => service.runs.get(runId)?.sessionId === sessionId);
  return {
    session_id: sessionId,
    created_at: createdAt,
    owner: LOCAL_USER,
    project_id: projectId,
    status,
    checkpoints_count: checkpoints.length,
    checkpoint_storage_bytes: checkpoints.reduce((sum, checkpoint) => sum + sizeBytes(checkpoint), 0),
    display_name: displayName,
    user_metadata: userMetadata,
  };
}
