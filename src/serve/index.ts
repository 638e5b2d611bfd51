/**
 * A gateway over a sampler in the shapes of OpenAI and Anthropic, with a recorder for reinforcement learning.
 *
 * @module tinker-rx/serve
 */
import '../support/checkNode.js';
export { agentRollout, type AgentEndpoint, type AgentResult, type AgentRolloutOptions } from './agentRollout.js';
export type { GatewayKey } from './http/access.js';
export type { AccessEntry } from './http/Metrics.js';
export type { SamplerSourceClient, ServedSampler } from './models/ModelCache.js';
export type { RecordedSession } from './record/recordSession.js';
export { remoteRollout, type RemoteRolloutOptions } from './remoteRollout.js';
export { serveSampler, type SamplerOpener, type ServeOptions } from './serveSampler.js';
export { recordCalls, type CallRecorder, type Feedback, type RecordCallsOptions } from './traffic/CallRecorder.js';
export { hostedEndpoints, serveUpstream, type HostedEndpoints, type UpstreamOptions } from './traffic/serveUpstream.js';
export type { CloseGatewayOptions, GatewayOptions, ServedGateway } from './startGateway.js';
