export { BytesRenderer } from './families/bytes.js';
export { ChatTemplateRenderer, type ChatTemplateOptions } from './families/chatTemplate.js';
export { hasThinking, textOf, thinkingOf, withoutThinking } from './core/content.js';
export { continuePrompt, type ContinuedPrompt, type Exchange } from './core/continuePrompt.js';
export { DeepSeekV3Renderer, type DeepSeekV3Options } from './families/deepseekV3.js';
export { DeepSeekV41Renderer, type DeepSeekV41Options } from './families/deepseekV4_1.js';
export { GlmRenderer, type GlmOptions } from './families/glm.js';
export { GptOssRenderer, type GptOssOptions } from './families/gptOss.js';
export { imageSize, inklingImageTokens, kimiImageTokens, qwenImageTokens, type ImageTokenRule } from './core/images.js';
export { KimiRenderer, type KimiOptions } from './families/kimi.js';
export { Llama3Renderer } from './families/llama3.js';
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
} from './core/Message.js';
export { Nemotron3Renderer, type Nemotron3Options } from './families/nemotron3.js';
export { messagesFrom, toOpenAIMessage } from './core/openai.js';
export { pythonJson, type PythonJsonOptions } from './tools/pythonJson.js';
export { Qwen3Renderer, type Qwen3Options, type Qwen3Thinking } from './families/qwen3.js';
export { Qwen35Renderer } from './families/qwen3_5.js';
export { Qwen38Renderer, type Qwen38Effort } from './families/qwen3_8.js';
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
} from './core/Renderer.js';
export { RendererError } from './core/RendererError.js';
export { RoleColonRenderer } from './families/roleColon.js';
export { Smollm2Renderer } from './families/smollm2.js';
export { TmlV0Renderer, type TmlV0Options } from './families/tmlV0.js';
export { withTools } from './tools/withTools.js';
