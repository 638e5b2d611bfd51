import type * as t from 'io-ts';
import { describe, expectTypeOf, it } from 'vitest';
import type * as admin from '../../../src/wire/admin.js';
import type * as adminTypes from '../../../src/wire/adminTypes.js';
import type * as customLoss from '../../../src/wire/customLoss.js';
import type * as modelTypes from '../../../src/wire/modelTypes.js';
import type * as rest from '../../../src/wire/rest.js';
import type * as restTypes from '../../../src/wire/restTypes.js';
import type * as sampling from '../../../src/wire/sampling.js';
import type * as session from '../../../src/wire/session.js';
import type * as sessionTypes from '../../../src/wire/sessionTypes.js';
import type * as training from '../../../src/wire/training.js';
import type * as weights from '../../../src/wire/weights.js';

/** `true` if each type can stand for the other, and they have the same keys. */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? SameKeys<A, B> : 'lacks') : 'differs';
type SameKeys<A, B> = [keyof A] extends [keyof B] ? ([keyof B] extends [keyof A] ? true : 'lacks') : 'differs';
/** What the codec of each name in `Types` reads, against the documented type. */
type Agree<Types, Codecs> = {
  [K in keyof Types & keyof Codecs]: Codecs[K] extends t.Mixed ? Same<Types[K], t.TypeOf<Codecs[K]>> : 'no codec';
};
type AllTrue<T> = { [K in keyof T]: true };

interface RestTypes {
  Checkpoint: restTypes.Checkpoint;
  Cursor: restTypes.Cursor;
  CheckpointsListResponse: restTypes.CheckpointsListResponse;
  TrainingRun: restTypes.TrainingRun;
  TrainingRunsResponse: restTypes.TrainingRunsResponse;
  ExternalWeightsUrlsResponse: restTypes.ExternalWeightsUrlsResponse;
  GetSessionResponse: restTypes.GetSessionResponse;
  ListSessionsResponse: restTypes.ListSessionsResponse;
  SessionStatus: restTypes.SessionStatus;
  SessionSearchCursor: restTypes.SessionSearchCursor;
  SessionSummary: restTypes.SessionSummary;
  SessionSearchResponse: restTypes.SessionSearchResponse;
  CheckpointSearchCursor: restTypes.CheckpointSearchCursor;
  CheckpointSearchResponse: restTypes.CheckpointSearchResponse;
}
interface AdminTypes {
  AuditLogResponse: adminTypes.AuditLogResponse;
  BillingEventInfo: adminTypes.BillingEventInfo;
  BillingUsageResponse: adminTypes.BillingUsageResponse;
  CheckpointStorageUsageResponse: adminTypes.CheckpointStorageUsageResponse;
  ApiKeyResponse: adminTypes.ApiKeyResponse;
}
interface SessionTypes {
  ClientConfig: sessionTypes.ClientConfig;
  DynamicConfig: sessionTypes.DynamicConfig;
  SupportedModel: sessionTypes.SupportedModel;
  GetServerCapabilitiesResponse: sessionTypes.GetServerCapabilitiesResponse;
}
interface ModelTypes {
  LoraConfig: modelTypes.LoraConfig;
  OptimStepResponse: modelTypes.OptimStepResponse;
  LoadWeightsResponse: modelTypes.LoadWeightsResponse;
  ExternalWeightsUpload: modelTypes.ExternalWeightsUpload;
  GetSamplerResponse: modelTypes.GetSamplerResponse;
  CustomLossInput: customLoss.CustomLossInput;
}

// These are checked by the compiler: a difference is a type error in this file.
describe('documented types are what their codecs read', () => {
  it('of REST calls', () => {
    expectTypeOf<Agree<RestTypes, typeof rest>>().toEqualTypeOf<AllTrue<RestTypes>>();
  });

  it('of the account', () => {
    expectTypeOf<Agree<AdminTypes, typeof admin>>().toEqualTypeOf<AllTrue<AdminTypes>>();
  });

  it('of sessions', () => {
    expectTypeOf<Agree<SessionTypes, typeof session>>().toEqualTypeOf<AllTrue<SessionTypes>>();
  });

  it('of models and weights', () => {
    type Codecs = typeof training & typeof weights & typeof sampling & typeof customLoss;
    expectTypeOf<Agree<ModelTypes, Codecs>>().toEqualTypeOf<AllTrue<ModelTypes>>();
  });

  it('of models with an optimizer, whose config the documented type leaves shorter', () => {
    type Info = t.TypeOf<typeof training.GetInfoResponse>;
    type Weights = t.TypeOf<typeof weights.WeightsInfoResponse>;
    expectTypeOf<Info>().toExtend<modelTypes.GetInfoResponse>();
    expectTypeOf<keyof Info>().toEqualTypeOf<keyof modelTypes.GetInfoResponse>();
    expectTypeOf<Weights>().toExtend<modelTypes.WeightsInfoResponse>();
    expectTypeOf<keyof Weights>().toEqualTypeOf<keyof modelTypes.WeightsInfoResponse>();
  });
});
