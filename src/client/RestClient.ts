import { defer, first, map, repeat, timer, type Observable } from 'rxjs';
import { jwtClaims } from '../transport/auth.js';
import {
  AssignProjectRequest,
  type CheckpointSearchCursor,
  CheckpointSearchRequest,
  CheckpointSearchResponse,
  CheckpointsListResponse,
  ExternalWeightsUrlsResponse,
  GetSessionResponse,
  ListSessionsResponse,
  type SessionSearchCursor,
  SessionSearchRequest,
  SessionSearchResponse,
  SetTtlRequest,
  TraceExportResponse,
  TrainingRun,
  TrainingRunsResponse,
} from '../wire/rest.js';
import type { Input } from '../wire/record.js';
import { GetSamplerResponse } from '../wire/sampling.js';
import type { FinishStatus } from '../wire/session.js';
import { ValidationError } from '../wire/tinkerError.js';
import { parseTinkerPath, type CheckpointType } from '../wire/tinkerPath.js';
import type { LoraConfig } from '../wire/training.js';
import {
  CopyWeightsRequest,
  CopyWeightsResponse,
  ExternalWeightsUpload,
  ExternalWeightsUploadFinishRequest,
  ExternalWeightsUploadFinishResponse,
  ExternalWeightsUploadStartRequest,
  WeightsInfoRequest,
  WeightsInfoResponse,
} from '../wire/weights.js';
import { optionNames, withoutCallOptions, type CallOptions } from './CallOptions.js';
import { APIResponseValidationError, RequestFailedError } from './errors.js';
import { withoutUndefined, prepare } from '../wire/record.js';
import { RestCaller, type RestCall } from './rest/RestCaller.js';
import { segments, withQuery } from './rest/restQuery.js';
import type { TinkerFuture } from './TinkerFuture.js';

/** Whose things to look at. */
export type AccessScope = 'owned' | 'accessible';
/** Options of calls that can also read what others share with you. */
export interface AccessOptions extends CallOptions {
  /** Default `owned`: what belongs to the caller. */
  readonly accessScope?: AccessScope;
}
/** Which page of a list to return. */
export interface PageOptions extends CallOptions {
  /** Most entries of the page. Default 20; 100 for checkpoints. */
  readonly limit?: number;
  /** Entries to skip. Default 0. */
  readonly offset?: number;
}
/** Options of `RestClient.listSessions`. */
export type ListSessionsOptions = PageOptions & AccessOptions;
/** Options of `RestClient.listTrainingRuns`. */
export interface ListTrainingRunsOptions extends PageOptions, AccessOptions {
  /** Only runs of this project. Default: of every project. */
  readonly projectId?: string;
}
/** Options of `RestClient.copyWeights`. */
export interface CopyWeightsOptions extends CallOptions {
  /** Default `TINKER_PROJECT_ID`. */
  readonly destinationProjectId?: string;
  /** Seconds until the copy expires, from an hour to ten years. Default: never. */
  readonly ttlSeconds?: number;
  /** The owner's token, to copy another user's weights. Sent as a secret header. */
  readonly weightsAccessToken?: string;
}
/** What is going to be uploaded. */
export interface ExternalWeightsUploadOptions extends CallOptions {
  /** The base model that the adapter was trained on. */
  readonly baseModel: string;
  /** The adapter's options: its files must be as `saveWeightsExternal` writes them for these. */
  readonly loraConfig: Partial<LoraConfig> & Pick<LoraConfig, 'rank'>;
  /** Default `TINKER_PROJECT_ID`; without one the service decides. */
  readonly destinationProjectId?: string;
}
/** Whose things to find: the caller's own, everybody's that the caller may see, or those of some people (1 to 10). */
export type SearchOwner =
  | {
      /** `own` (yours), `accessible` (yours and what is shared with you) or `user` (of named users). */
      readonly type: 'own' | 'accessible';
    }
  | {
      /** `own` (yours), `accessible` (yours and what is shared with you) or `user` (of named users). */
      readonly type: 'user';
      /** The URNs of the users whose sessions or checkpoints to search. */
      readonly ownerUrns: readonly string[];
    };
/** Which checkpoints to find. Every field narrows the search; without any it finds all of the caller's own. */
export interface CheckpointSearch extends CallOptions {
  /** Only these projects; one that the caller may not list is an error. Default: every project the caller may list. */
  readonly projectIds?: readonly string[] | undefined;
  /** Pairs that a checkpoint's metadata must hold, all of them. */
  readonly userMetadata?: Readonly<Record<string, string>> | undefined;
  /** Default: every type. */
  readonly checkpointType?: CheckpointType | undefined;
  /** Whose checkpoints. Default the caller's own. */
  readonly owner?: SearchOwner | undefined;
  /** Any of these base models; an empty list finds nothing. Default: every base model. */
  readonly baseModels?: readonly string[] | undefined;
  /** Most checkpoints of the page, from 1 to 200. Default 50. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before, as it was given. Default: the first page. */
  readonly cursor?: CheckpointSearchCursor | undefined;
}
/** Which sessions to find. Every field narrows the search; without any it finds all of the caller's own. */
export interface SessionSearch extends CallOptions {
  /** The session of this id. With `displayName`, a session that matches either one is found. */
  readonly sessionId?: string | undefined;
  /** Only these projects. Default: every project the caller may list. */
  readonly projectIds?: readonly string[] | undefined;
  /** Pairs that a session's metadata must hold, all of them. */
  readonly userMetadata?: Readonly<Record<string, string>> | undefined;
  /** Words of the name, upper or lower case; all of them must be in it. */
  readonly displayName?: string | undefined;
  /** Whose sessions. Default the caller's own. */
  readonly owner?: SearchOwner | undefined;
  /** Any of these. Default: every status. */
  readonly statuses?:
    | readonly (
        | { readonly type: 'active' | 'cancelled' | 'failed' }
        | { readonly type: 'client_finished'; readonly reasons?: readonly FinishStatus[] }
      )[]
    | undefined;
  /** Most sessions of the page, from 1 to 200. Default 50. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. Default: the first page. */
  readonly cursor?: SessionSearchCursor | undefined;
}
/** Who a credential belongs to. */
export interface Identity {
  /** The user, as the service names people. */
  readonly userUrn: string;
  /** The user's organisation. */
  readonly orgUrn: string;
  /** The account's e-mail address, if the service reports one. */
  readonly email?: string;
}

const TRACE_POLL_MS = 5000;
const ACCESS_OPTIONS = optionNames<AccessOptions>({ accessScope: true });
/** A page as `fromPages` asks for it has a cursor as well, for the lists that go by one. */
type Page<T> = T & { readonly cursor?: unknown };
const PAGE = { limit: true, offset: true, cursor: true } as const;
const PAGE_OPTIONS = optionNames<Page<PageOptions>>(PAGE);
const SESSIONS_OPTIONS = optionNames<Page<ListSessionsOptions>>({ ...PAGE, accessScope: true });
const RUNS_OPTIONS = optionNames<Page<ListTrainingRunsOptions>>({ ...PAGE, accessScope: true, projectId: true });
const UPLOAD_OPTIONS = optionNames<ExternalWeightsUploadOptions>({
  baseModel: true,
  loraConfig: true,
  destinationProjectId: true,
});
const COPY_OPTIONS = optionNames<CopyWeightsOptions>({
  destinationProjectId: true,
  ttlSeconds: true,
  weightsAccessToken: true,
});

/** Training runs, checkpoints and sessions as the service keeps them. Needs no session. */
export class RestClient extends RestCaller {
  /** Returns one training run by its id. */
  getTrainingRun(trainingRunId: string, options: AccessOptions = {}): TinkerFuture<TrainingRun> {
    return this.start(options, () => this.#trainingRun('get_training_run', trainingRunId, options), ACCESS_OPTIONS);
  }

  /** Returns the training run that a `tinker://` checkpoint path belongs to. */
  getTrainingRunByTinkerPath(path: string, options: AccessOptions = {}): TinkerFuture<TrainingRun> {
    return this.start(
      options,
      () => this.#trainingRun('get_training_run_by_tinker_path', parseTinkerPath(path).trainingRunId, options),
      ACCESS_OPTIONS,
    );
  }

  /** Returns one page of training runs, 20 by default. */
  listTrainingRuns(options: ListTrainingRunsOptions = {}): TinkerFuture<TrainingRunsResponse> {
    const call = (): RestCall => {
      const { limit = 20, offset = 0, accessScope = 'owned', projectId } = options;
      const query = { limit, offset, access_scope: accessScope, project_id: projectId };
      return { method: 'GET', path: withQuery('training_runs', query) };
    };
    return this.ask('list_training_runs', call, TrainingRunsResponse, options, RUNS_OPTIONS);
  }

  /** Returns all checkpoints of one training run. */
  listCheckpoints(trainingRunId: string, options: CallOptions = {}): TinkerFuture<CheckpointsListResponse> {
    return this.ask(
      'list_checkpoints',
      () => ({ method: 'GET', path: `${runPath(trainingRunId)}/checkpoints` }),
      CheckpointsListResponse,
      options,
    );
  }

  /** Returns one page of your checkpoints over all training runs, 100 by default. */
  listUserCheckpoints(options: PageOptions = {}): TinkerFuture<CheckpointsListResponse> {
    const call = (): RestCall => {
      const { limit = 100, offset = 0 } = options;
      return { method: 'GET', path: withQuery('checkpoints', { limit, offset }) };
    };
    return this.ask('list_user_checkpoints', call, CheckpointsListResponse, options, PAGE_OPTIONS);
  }

  /**
   * Checkpoints by project, metadata, type, owner or base model, newest first; `nextCursor` leads to the next page.
   * Experimental, as in the Python SDK 0.39.
   */
  searchCheckpoints(search: CheckpointSearch = {}): TinkerFuture<CheckpointSearchResponse> {
    const find = (): Observable<CheckpointSearchResponse> => {
      const json = prepare(CheckpointSearchRequest, withoutCallOptions(search) as Input<never>);
      return this.asking('search_checkpoints', { path: 'checkpoints/search', json }, CheckpointSearchResponse);
    };
    return this.start(search, find, 'checked');
  }

  /** Returns the base model and the LoRA settings of saved weights. */
  getWeightsInfoByTinkerPath(path: string, options: CallOptions = {}): TinkerFuture<WeightsInfoResponse> {
    return this.start(options, () => this.weightsInfo(parseTinkerPath(path).path));
  }

  /** @internal The same as part of a future's work. */
  weightsInfo(path: string): Observable<WeightsInfoResponse> {
    const json = WeightsInfoRequest.encode({ tinkerPath: path });
    return this.asking('get_weights_info_by_tinker_path', { path: 'weights_info', json }, WeightsInfoResponse);
  }

  /** Signed addresses of an exported checkpoint's files, and when they expire. */
  getExternalWeightsUrls(path: string, options: CallOptions = {}): TinkerFuture<ExternalWeightsUrlsResponse> {
    return this.start(options, () => {
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

  /**
   * Begins to upload an adapter: PUT each file to its address, then call {@link externalWeightsUploadFinish}. Services may not allow it.
   * Experimental, as in the Python SDK 0.39.
   */
  externalWeightsUploadStart(options: ExternalWeightsUploadOptions): TinkerFuture<ExternalWeightsUpload> {
    const begin = (): Observable<ExternalWeightsUpload> => {
      // Callers without types may leave them out.
      const { baseModel, loraConfig, ...rest } = options ?? {};
      const json = prepare(
        ExternalWeightsUploadStartRequest,
        withoutUndefined({ baseModel, loraConfig, destinationProjectId: projectOf(rest) }),
      );
      const call = { path: 'external_weights_upload_start', json };
      return this.asking('external_weights_upload_start', call, ExternalWeightsUpload);
    };
    return this.start(options, begin, UPLOAD_OPTIONS);
  }

  /** Makes a checkpoint of files that were uploaded; the result is its path. */
  externalWeightsUploadFinish(uploadId: string, options: CallOptions = {}): TinkerFuture<string> {
    return this.start(options, () =>
      this.asking(
        'external_weights_upload_finish',
        { path: 'external_weights_upload_finish', json: prepare(ExternalWeightsUploadFinishRequest, { uploadId }) },
        ExternalWeightsUploadFinishResponse,
      ).pipe(map(({ tinkerPath }) => tinkerPath)),
    );
  }

  /** Deletes a checkpoint for good. `checkpointId` is `weights/name` or `sampler_weights/name`. */
  deleteCheckpoint(trainingRunId: string, checkpointId: string, options: CallOptions = {}): TinkerFuture<void> {
    const call = (): RestCall => ({ method: 'DELETE', path: checkpointOf(trainingRunId, checkpointId) });
    return this.tell('delete_checkpoint', call, options);
  }

  /** Deletes the checkpoint at a `tinker://` path for good. */
  deleteCheckpointFromTinkerPath(path: string, options: CallOptions = {}): TinkerFuture<void> {
    return this.#tellCheckpoint('delete_checkpoint_from_tinker_path', 'DELETE', path, '', options);
  }

  /** Makes a checkpoint readable for everybody. */
  publishCheckpointFromTinkerPath(path: string, options: CallOptions = {}): TinkerFuture<void> {
    return this.#tellCheckpoint('publish_checkpoint_from_tinker_path', 'POST', path, '/publish', options);
  }

  /** Makes a published checkpoint private again. */
  unpublishCheckpointFromTinkerPath(path: string, options: CallOptions = {}): TinkerFuture<void> {
    return this.#tellCheckpoint('unpublish_checkpoint_from_tinker_path', 'DELETE', path, '/publish', options);
  }

  /** Sets when a checkpoint expires; null: never. */
  setCheckpointTtlFromTinkerPath(
    path: string,
    ttlSeconds: number | null,
    options: CallOptions = {},
  ): TinkerFuture<void> {
    return this.#tellCheckpoint('set_checkpoint_ttl_from_tinker_path', 'PUT', path, '/ttl', options, () =>
      prepare(SetTtlRequest, { ttlSeconds }),
    );
  }

  /** Copies a checkpoint into a project; the result is the path of the copy. */
  copyWeights(path: string, options: CopyWeightsOptions = {}): TinkerFuture<string> {
    const copy = (): Observable<string> => {
      const destinationProjectId = projectOf(options);
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
    };
    return this.start(options, copy, COPY_OPTIONS);
  }

  /** Returns the training runs and samplers of one session. */
  getSession(sessionId: string, options: AccessOptions = {}): TinkerFuture<GetSessionResponse> {
    const call = (): RestCall => {
      const { accessScope = 'owned' } = options;
      return { method: 'GET', path: withQuery(sessionPath(sessionId), { access_scope: accessScope }) };
    };
    return this.ask('get_session', call, GetSessionResponse, options, ACCESS_OPTIONS);
  }

  /** Returns one page of session ids, 20 by default. */
  listSessions(options: ListSessionsOptions = {}): TinkerFuture<ListSessionsResponse> {
    const call = (): RestCall => {
      const { limit = 20, offset = 0, accessScope = 'owned' } = options;
      return { method: 'GET', path: withQuery('sessions', { limit, offset, access_scope: accessScope }) };
    };
    return this.ask('list_sessions', call, ListSessionsResponse, options, SESSIONS_OPTIONS);
  }

  /** Sessions by owner, project, status, name or metadata, newest first; `nextCursor` leads to the next page. */
  searchSessions(search: SessionSearch = {}): TinkerFuture<SessionSearchResponse> {
    const find = (): Observable<SessionSearchResponse> => {
      const json = prepare(SessionSearchRequest, withoutCallOptions(search) as Input<never>);
      return this.asking('search_sessions', { path: 'sessions/search', json }, SessionSearchResponse);
    };
    return this.start(search, find, 'checked');
  }

  /** Moves a session, with its runs and checkpoints, into a project. */
  assignSessionProject(sessionId: string, projectId: string, options: CallOptions = {}): TinkerFuture<void> {
    const call = (): RestCall => ({
      method: 'PUT',
      path: `${sessionPath(sessionId)}/project`,
      json: prepare(AssignProjectRequest, { projectId }),
    });
    return this.tell('assign_session_project', call, options);
  }

  /** The address of a session's trace; the service may take a while to build it. */
  exportSessionTrace(sessionId: string, options: CallOptions = {}): TinkerFuture<string> {
    const poll = (): Observable<string | undefined> =>
      this.asking(
        'export_session_trace',
        { method: 'GET', path: `${sessionPath(sessionId)}/trace_export` },
        TraceExportResponse,
      ).pipe(
        map(({ status, url, error = 'no reason given' }) => {
          if (status === 'failed')
            throw new RequestFailedError(`the trace export of ${sessionId} failed: ${error}`, { category: 'server' });
          // Asked again, it would be asked forever.
          if (status === 'ready' && url === undefined)
            throw new APIResponseValidationError(`the trace of ${sessionId} is ready, but the service gave no address`);
          return status === 'ready' ? url : undefined;
        }),
      );
    const delay = (): Observable<unknown> => timer(TRACE_POLL_MS, this.connection.scheduler);
    return this.start(options, () =>
      defer(poll).pipe(
        repeat({ delay }),
        first((url) => url !== undefined),
      ),
    );
  }

  /** Returns which model or checkpoint a sampler samples from. */
  getSampler(samplerId: string, options: CallOptions = {}): TinkerFuture<GetSamplerResponse> {
    const call = (): RestCall => ({ method: 'GET', path: `samplers/${segments(samplerId, 'samplerId')}` });
    return this.ask('get_sampler', call, GetSamplerResponse, options);
  }

  /** Who the credential belongs to, where the service works with JWTs. */
  whoami(options: CallOptions = {}): TinkerFuture<Identity> {
    return this.start(options, () =>
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

  #trainingRun(sdkMethod: string, trainingRunId: string, options: AccessOptions): Observable<TrainingRun> {
    const { accessScope = 'owned' } = options;
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
    options: CallOptions,
    json?: () => unknown,
  ): TinkerFuture<void> {
    const call = (): RestCall => ({
      method,
      path: `${checkpointPath(path)}${suffix}`,
      ...(json === undefined ? {} : { json: json() }),
    });
    return this.tell(sdkMethod, call, options);
  }
}

const projectOf = ({ destinationProjectId }: { readonly destinationProjectId?: string }): string | undefined =>
  destinationProjectId ?? (process.env['TINKER_PROJECT_ID'] || undefined);
const runPath = (trainingRunId: string): string => `training_runs/${segments(trainingRunId, 'trainingRunId')}`;
const sessionPath = (sessionId: string): string => `sessions/${segments(sessionId, 'sessionId')}`;
const checkpointOf = (trainingRunId: string, checkpointId: string): string =>
  `${runPath(trainingRunId)}/checkpoints/${segments(checkpointId, 'checkpointId')}`;
function checkpointPath(path: string): string {
  const { trainingRunId, checkpointId } = parseTinkerPath(path);
  return checkpointOf(trainingRunId, checkpointId);
}
