import type { TypeOf } from 'io-ts';
import { CheckpointSearchRequest } from '../../wire/index.js';
import { LOCAL_USER } from '../http/auth.js';
import { HttpError } from '../http/httpError.js';
import { json } from '../http/reply.js';
import { post, type Route } from '../http/router.js';
import type { LocalService } from '../service/localService.js';
import { tinkerPath, type Manifest } from '../store/manifest.js';
import { toCheckpoint } from './checkpoints.js';

type Search = TypeOf<typeof CheckpointSearchRequest>;

/** Checkpoints by project, metadata, type, owner or base model, newest first. */
export const checkpointSearchRoutes = (service: LocalService): Route[] => [
  post('checkpoints/search', (context) => {
    const search = context.decode(CheckpointSearchRequest);
    refuseUnknownProjects(service, search);
    const found = service.checkpoints
      .list()
      .filter((checkpoint) => matches(service, search, checkpoint) && isAfter(search, checkpoint));
    const page = found.slice(0, search.limit);
    const last = found.length > page.length ? page.at(-1) : undefined;
    return json({
      checkpoints: page.map(toCheckpoint),
      ...(last === undefined
        ? {}
        : { next_cursor: { last_created_at: last.createdAt, last_checkpoint_uuid: tinkerPath(last) } }),
    });
  }),
];

/** A project is there once a session is in it. */
function refuseUnknownProjects(service: LocalService, { projectIds = [] }: Search): void {
  const known = new Set([
    service.checkProject(undefined),
    ...service.sessions.list().map(({ projectId }) => projectId),
  ]);
  const unknown = projectIds.find((projectId) => !known.has(projectId));
  if (unknown !== undefined) throw new HttpError(403, `you may not list the project ${unknown.slice(0, 128)}`);
}

function matches(service: LocalService, search: Search, checkpoint: Manifest): boolean {
  const { projectIds, userMetadata, checkpointType, owner, baseModels } = search;
  return (
    (projectIds === undefined || projectIds.includes(projectOf(service, checkpoint))) &&
    Object.entries(userMetadata).every(([key, value]) => checkpoint.userMetadata?.[key] === value) &&
    (checkpointType === undefined || checkpoint.type === checkpointType) &&
    (owner.type !== 'user' || owner.ownerUrns.includes(LOCAL_USER)) &&
    (baseModels === undefined || baseModels.includes(checkpoint.baseModel))
  );
}

/** The project of the session that the checkpoint's run belongs to. */
function projectOf(service: LocalService, { runId }: Manifest): string {
  const sessionId = service.runs.get(runId)?.sessionId;
  const session = service.sessions.list().find((candidate) => candidate.sessionId === sessionId);
  return session?.projectId ?? service.checkProject(undefined);
}

/** Whether a checkpoint comes after the cursor in a list that has the newest first. */
function isAfter({ cursor }: Search, checkpoint: Manifest): boolean {
  if (cursor === undefined) return true;
  const [created, last] = [Date.parse(checkpoint.createdAt), Date.parse(cursor.lastCreatedAt)];
  return created < last || (created === last && tinkerPath(checkpoint) < cursor.lastCheckpointUuid);
}
