/**
 * A sampler as a language model of the Vercel AI SDK.
 *
 * @module tinker-rx/ai-sdk
 */
import '../support/checkNode.js';
export {
  recordingMiddleware,
  type RecordingMiddleware,
  type RecordingMiddlewareOptions,
} from './recordingMiddleware.js';
export { tinker, type ChatSampler, type TinkerModelOptions } from './tinker.js';
export type {
  CallOptions,
  GenerateResult,
  ProviderMetadata,
  SpecificationVersion,
  StreamPart,
  TinkerLanguageModel,
  TinkerMetadata,
} from './types.js';
