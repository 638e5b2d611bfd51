export { BytesRenderer } from './bytes.js';
export { ChatTemplateRenderer, type ChatTemplateOptions } from './chatTemplate.js';
export { hasThinking, textOf, thinkingOf, withoutThinking } from './content.js';
export { continuePrompt, type ContinuedPrompt, type Exchange } from './continuePrompt.js';
export { DeepSeekV3Renderer, type DeepSeekV3Options } from './deepseekV3.js';
export { DeepSeekV41Renderer, type DeepSeekV41Options } from './deepseekV4_1.js';
export { GlmRenderer, type GlmOptions } from './glm.js';
export { GptOssRenderer, type GptOssOptions } from './gptOss.js';
export { imageSize, inklingImageTokens, kimiImageTokens, qwenImageTokens, type ImageTokenRule } from './images.js';
export { KimiRenderer, type KimiOptions } from './kimi.js';
export { Llama3Renderer } from './llama3.js';
export type {
  AudioPart,
  Content,
  ContentPart,
  ImagePart,
  Message,
  Role,
  TextPart,
  ThinkingPart,
  ToolCall,
  ToolSpec,
  UnparsedToolCall,
} from './Message.js';
export { MODEL_RENDERERS, rendererFor, renderersFor } from './models.js';
export { Nemotron3Renderer, type Nemotron3Options } from './nemotron3.js';
export { messagesFrom, toOpenAIMessage } from './openai.js';
export { pythonJson, type PythonJsonOptions } from './pythonJson.js';
export { Qwen3Renderer, type Qwen3Options, type Qwen3Thinking } from './qwen3.js';
export { Qwen35Renderer } from './qwen3_5.js';
export { Qwen38Renderer, type Qwen38Effort } from './qwen3_8.js';
export {
  getRenderer,
  registeredRenderers,
  registerRenderer,
  RENDERER_NAMES,
  type RendererFactory,
  type RendererOptions,
  type BuiltInRendererName,
  type RendererName,
} from './registry.js';
export type {
  GenerationPromptOptions,
  ParsedResponse,
  ParseOptions,
  Renderer,
  ResponseDelta,
  SupervisedExample,
  SupervisedOptions,
  Termination,
  TrainOn,
} from './Renderer.js';
export { RendererError } from './RendererError.js';
export { RoleColonRenderer } from './roleColon.js';
export { TmlV0Renderer, type TmlV0Options } from './tmlV0.js';
export { withTools } from './withTools.js';
