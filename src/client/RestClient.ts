import { concatMap, defer, map, repeat, take, timer, throwError, of, type Observable } from 'rxjs';
import { jwtClaims } from '../transport/auth.js';
import {
  AssignProjectRequest,
  CheckpointsListResponse,
  ExternalWeightsUrlsResponse,
  GetSessionResponse,
  ListSessionsResponse,
  SessionSearchRequest,
  SessionSearchResponse,
  SetTtlRequest,
  TraceExportResponse,
  TrainingRun,
  TrainingRunsResponse,
} from '../wire/rest.js';
import type { Input } from '../wire/record.js';
import { GetSamplerResponse } from '../wire/sampling.js';
import { ValidationError } from '../wire/tinkerError.js';
import { parseTinkerPath } from '../wire/tinkerPath.js';
import { CopyWeightsRequest, CopyWeightsResponse, WeightsInfoRequest, WeightsInfoResponse } from '../wire/weights.js';
import { RequestFailedError } from './errors.js';
import { withoutUndefined, prepare } from './connection/prepare.js';
import { RestCaller } from './rest/RestCaller.js';
import { segments, withQuery } from './rest/restQuery.js';
import type { TinkerFuture } from './TinkerFuture.js';

/** Whose things to look at. */
export type AccessScope = 'owned' | 'accessible';
export interface PageOptions {
  readonly limit?: number;
  readonly offset?: number;
}
export interface ListTrainingRunsOptions extends PageOptions {
  readonly accessScope?: AccessScope;
  readonly projectId?: string;
}
export interface CopyWeightsOptions {
  /** Default `TINKER_PROJECT_ID`. */
  readonly destinationProjectId?: string;
  readonly ttlSeconds?: number;
  /** A token of the owner, to copy weights of somebody else. Sent as a secret header. */
  readonly weightsAccessToken?: string;
}
export type SessionSearch = Parameters<typeof SessionSearchRequest.prepare>[0];
export interface Identity {
  readonly userUrn: string;
  readonly orgUrn: string;
  readonly email?: string;
}

const TRACE_POLL_MS = 5000;

/** Training runs, checkpoints and sessions as the service keeps them. Needs no session of its own. */
export class RestClient extends RestCaller {
  getTrainingRun(
    trainingRunId: string,
    { accessScope = 'owned' }: { readonly accessScope?: AccessScope } = {},
  ): TinkerFuture<TrainingRun> {
    return this.start(() => this.#trainingRun('get_training_run', trainingRunId, accessScope));
  }

  getTrainingRunByTinkerPath(
    path: string,
    { accessScope = 'owned' }: { readonly accessScope?: AccessScope } = {},
  ): TinkerFuture<TrainingRun> {
    return this.start(() =>
      this.#trainingRun('get_training_run_by_tinker_path', parseTinkerPath(path).trainingRunId, accessScope),
    );
  }

  listTrainingRuns({
    limit = 20,
    offset = 0,
    accessScope = 'owned',
    projectId,
  }: ListTrainingRunsOptions = {}): TinkerFuture<TrainingRunsResponse> {
    const path = withQuery('training_runs', { limit, offset, access_scope: accessScope, project_id: projectId });
    return this.ask('list_training_runs', { method: 'GET', path }, TrainingRunsResponse);
  }

  listCheckpoints(trainingRunId: string): TinkerFuture<CheckpointsListResponse> {
    return this.ask(
      'list_checkpoints',
      { method: 'GET', path: `${runPath(trainingRunId)}/checkpoints` },
      CheckpointsListResponse,
    );
  }

  listUserCheckpoints({ limit = 100, offset = 0 }: PageOptions = {}): TinkerFuture<CheckpointsListResponse> {
    return this.ask(
      'list_user_checkpoints',
      { method: 'GET', path: withQuery('checkpoints', { limit, offset }) },
      CheckpointsListResponse,
    );
  }

  getWeightsInfoByTinkerPath(path: string): TinkerFuture<WeightsInfoResponse> {
    return this.start(() => this.weightsInfo(path));
  }

  /** @internal The same as part of a future's work. */
  weightsInfo(path: string): Observable<WeightsInfoResponse> {
    const json = WeightsInfoRequest.encode({ tinkerPath: path });
    return this.asking('get_weights_info_by_tinker_path', { path: 'weights_info', json }, WeightsInfoResponse);
  }

  /** Signed addresses of an exported checkpoint's files, and when they expire. */
  getExternalWeightsUrls(path: string): TinkerFuture<ExternalWeightsUrlsResponse> {
    return this.start(() => {
      const { checkpointType } = parseTinkerPath(path);
      if (checkpointType !== 'external')
        throw new ValidationError('only external weights have download addresses: save with saveWeightsExternal first');
      return this.asking(
        'get_external_weights_urls',
        { method: 'GET', path: `${checkpointPath(path)}/external_weights_urls` },
        ExternalWeightsUrlsResponse,
      );
    });
  }

  deleteCheckpoint(trainingRunId: string, checkpointId: string): TinkerFuture<void> {
    const path = `${runPath(trainingRunId)}/checkpoints/${segments(checkpointId)}`;
    return this.tell('delete_checkpoint', () => ({ method: 'DELETE', path }));
  }

  deleteCheckpointFromTinkerPath(path: string): TinkerFuture<void> {
    return this.#tellCheckpoint('delete_checkpoint_from_tinker_path', 'DELETE', path, '');
  }

  publishCheckpointFromTinkerPath(path: string): TinkerFuture<void> {
    return this.#tellCheckpoint('publish_checkpoint_from_tinker_path', 'POST', path, '/publish');
  }

  unpublishCheckpointFromTinkerPath(path: string): TinkerFuture<void> {
    return this.#tellCheckpoint('unpublish_checkpoint_from_tinker_path', 'DELETE', path, '/publish');
  }

  /** Sets when a checkpoint expires; null: never. */
  setCheckpointTtlFromTinkerPath(path: string, ttlSeconds: number | null): TinkerFuture<void> {
    return this.#tellCheckpoint('set_checkpoint_ttl_from_tinker_path', 'PUT', path, '/ttl', () =>
      prepare(SetTtlRequest, { ttlSeconds }),
    );
  }

  /** Copies a checkpoint into a project; the result is the path of the copy. */
  copyWeights(path: string, options: CopyWeightsOptions = {}): TinkerFuture<string> {
    return this.start(() => {
      const destinationProjectId = options.destinationProjectId ?? (process.env['TINKER_PROJECT_ID'] || undefined);
      if (destinationProjectId === undefined)
        throw new ValidationError('give destinationProjectId or set TINKER_PROJECT_ID');
      const json = prepare(
        CopyWeightsRequest,
        withoutUndefined({
          sourcePath: parseTinkerPath(path).path,
          destinationProjectId,
          ttlSeconds: options.ttlSeconds,
        }),
      );
      const headers =
        options.weightsAccessToken === undefined ? {} : { 'x-tinker-weights-access-token': options.weightsAccessToken };
      return this.asking('copy_weights', { path: 'copy_weights', json, headers }, CopyWeightsResponse).pipe(
        map(({ tinkerPath }) => tinkerPath),
      );
    });
  }

  getSession(
    sessionId: string,
    { accessScope = 'owned' }: { readonly accessScope?: AccessScope } = {},
  ): TinkerFuture<GetSessionResponse> {
    return this.ask(
      'get_session',
      { method: 'GET', path: withQuery(sessionPath(sessionId), { access_scope: accessScope }) },
      GetSessionResponse,
    );
  }

  listSessions({
    limit = 20,
    offset = 0,
    accessScope = 'owned',
  }: PageOptions & { readonly accessScope?: AccessScope } = {}): TinkerFuture<ListSessionsResponse> {
    return this.ask(
      'list_sessions',
      { method: 'GET', path: withQuery('sessions', { limit, offset, access_scope: accessScope }) },
      ListSessionsResponse,
    );
  }

  /** Sessions by owner, project, status, name or metadata, newest first; `nextCursor` leads to the next page. */
  searchSessions(search: SessionSearch = {}): TinkerFuture<SessionSearchResponse> {
    return this.start(() =>
      this.asking(
        'search_sessions',
        { path: 'sessions/search', json: prepare(SessionSearchRequest, search as Input<never>) },
        SessionSearchResponse,
      ),
    );
  }

  assignSessionProject(sessionId: string, projectId: string): TinkerFuture<void> {
    const json = AssignProjectRequest.encode({ projectId });
    const path = `${sessionPath(sessionId)}/project`;
    return this.tell('assign_session_project', () => ({ method: 'PUT', path, json }));
  }

  /** The address of a session's trace; the service may take a while to build it. */
  exportSessionTrace(sessionId: string): TinkerFuture<string> {
    const poll = (): Observable<string | undefined> =>
      this.asking(
        'export_session_trace',
        { method: 'GET', path: `${sessionPath(sessionId)}/trace_export` },
        TraceExportResponse,
      ).pipe(
        concatMap(({ status, url, error }) => {
          if (status === 'failed')
            return throwError(
              () =>
                new RequestFailedError(`the trace export of ${sessionId} failed: ${error ?? 'no reason given'}`, {
                  category: 'server',
                }),
            );
          return of(status === 'ready' ? url : undefined);
        }),
      );
    return this.start(() =>
      defer(poll).pipe(
        repeat({ delay: () => timer(TRACE_POLL_MS, this.connection.scheduler) }),
        concatMap((url) => (url === undefined ? [] : [url])),
        take(1),
      ),
    );
  }

  getSampler(samplerId: string): TinkerFuture<GetSamplerResponse> {
    return this.ask('get_sampler', { method: 'GET', path: `samplers/${segments(samplerId)}` }, GetSamplerResponse);
  }

  /** Who the credential belongs to, where the service works with JWTs. */
  whoami(): TinkerFuture<Identity> {
    return this.start(() =>
      this.connection.token().pipe(
        map((token) => {
          const claims = token.startsWith('eyJ') ? jwtClaims(token) : undefined;
          if (typeof claims?.['sub'] !== 'string')
            throw new ValidationError('the service does not say who you are: it uses plain API keys');
          const email = claims['email'];
          return {
            userUrn: claims['sub'],
            orgUrn: `tml:organization:${String(claims['org_id'])}`,
            ...(typeof email === 'string' && email !== '' ? { email } : {}),
          };
        }),
      ),
    );
  }

  #trainingRun(sdkMethod: string, trainingRunId: string, accessScope: AccessScope): Observable<TrainingRun> {
    return this.asking(
      sdkMethod,
      { method: 'GET', path: withQuery(runPath(trainingRunId), { access_scope: accessScope }) },
      TrainingRun,
    );
  }

  #tellCheckpoint(
    sdkMethod: string,
    method: 'POST' | 'PUT' | 'DELETE',
    path: string,
    suffix: string,
    json?: () => unknown,
  ): TinkerFuture<void> {
    return this.tell(sdkMethod, () => ({
      method,
      path: `${checkpointPath(path)}${suffix}`,
      ...(json === undefined ? {} : { json: json() }),
    }));
  }
}

const runPath = (trainingRunId: string): string => `training_runs/${segments(trainingRunId)}`;
const sessionPath = (sessionId: string): string => `sessions/${segments(sessionId)}`;
function checkpointPath(path: string): string {
  const { trainingRunId, checkpointId } = parseTinkerPath(path);
  return `${runPath(trainingRunId)}/checkpoints/${segments(checkpointId)}`;
}
