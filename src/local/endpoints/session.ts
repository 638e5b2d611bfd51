import {
  ClientConfig,
  CreateSessionRequest,
  DynamicConfig,
  FinishSessionRequest,
  HealthResponse,
  SessionHeartbeatRequest,
  TelemetrySendRequest,
} from '../../wire/index.js';
import { HttpError } from '../http/httpError.js';
import { json, noContent, type Reply } from '../http/reply.js';
import type { RequestContext } from '../http/requestContext.js';
import { get, post, type Route } from '../http/router.js';
import type { LocalService } from '../service/localService.js';

/** Flags, capabilities, and the life of a session. */
export const sessionRoutes = (service: LocalService): Route[] => [
  get('healthz', () => {
    const { failure } = service.engine;
    if (failure !== undefined) throw new HttpError(503, failure.message);
    return json(HealthResponse.encode({ status: 'ok' }));
  }),
  get('get_server_capabilities', () => json({ supported_models: service.engine.baseModels.map(toSupportedModel) })),
  post('client/config', () =>
    json(service.options.dialect === 'skyrl' ? { pjwt_auth_enabled: false } : ClientConfig.encode(flagsOf(service))),
  ),
  post('client/dynamic_config', () => json(DynamicConfig.encode(dynamicFlagsOf(service)))),
  post('create_session', (context) => service.idempotency.once(context, () => createSession(service, context))),
  post('session_heartbeat', (context) => {
    service.sessions.use(context.decode(SessionHeartbeatRequest).sessionId);
    return json({ type: 'session_heartbeat' });
  }),
  post('sessions/:id/finish', async (context) => {
    const { reason, detail } = context.decode(FinishSessionRequest);
    await service.sessions.finish(context.param('id'), {
      type: 'client_finished',
      reason,
      ...(detail === undefined ? {} : { detail }),
    });
    return noContent();
  }),
  post('telemetry', (context) => {
    context.decode(TelemetrySendRequest);
    return json({ status: 'accepted' });
  }),
];

const toSupportedModel = ({ name, contextLength }: LocalService['engine']['baseModels'][number]) => ({
  model_name: name,
  max_context_length: contextLength,
  trainable: true,
  sampleable: true,
});

export const flagsOf = ({ controls }: LocalService): ClientConfig => ({ ...defaults(ClientConfig), ...controls.flags });
const dynamicFlagsOf = ({ controls }: LocalService): DynamicConfig => ({
  ...defaults(DynamicConfig),
  // A caller that hangs up must not keep the engine busy.
  sampleCancelEnabled: true,
  ...controls.dynamicFlags,
});

function defaults<A>(codec: { decode(u: unknown): { readonly _tag: string; readonly right?: A } }): A {
  return codec.decode({}).right!;
}

async function createSession(service: LocalService, context: RequestContext): Promise<Reply> {
  const { tags, userMetadata, sdkVersion, projectId, displayName } = context.decode(CreateSessionRequest);
  if (Object.values(userMetadata).some((value) => typeof value !== 'string')) {
    throw new HttpError(422, 'user_metadata must be a map of strings');
  }
  const { sessionId } = await service.sessions.create({
    tags,
    sdkVersion,
    projectId: service.checkProject(projectId),
    userMetadata: userMetadata as Record<string, string>,
    ...(displayName === undefined ? {} : { displayName }),
  });
  return json({ type: 'create_session', session_id: sessionId });
}
