/**
 * A gateway over a sampler in the shapes of OpenAI and Anthropic, with a recorder for reinforcement learning.
 *
 * @module tinker-rx/serve
 */
export { agentRollout, type AgentEndpoint, type AgentResult, type AgentRolloutOptions } from './agentRollout.js';
export type { SamplerSourceClient } from './models/ModelShelf.js';
export type { RecordedSession } from './record/recordSession.js';
export { serveSampler, type ServedSampler, type ServeOptions } from './serveSampler.js';
export type { GatewayOptions, ServedGateway } from './startGateway.js';
