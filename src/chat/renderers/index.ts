export { BytesRenderer } from './bytes.js';
export { hasThinking, textOf, thinkingOf, withoutThinking } from './content.js';
export { imageSize, qwenImageTokens, type ImageTokenRule } from './images.js';
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
export { messagesFrom, toOpenAIMessage } from './openai.js';
export { pythonJson, type PythonJsonOptions } from './pythonJson.js';
export { Qwen3Renderer, type Qwen3Options, type Qwen3Thinking } from './qwen3.js';
export {
  getRenderer,
  registeredRenderers,
  registerRenderer,
  RENDERER_NAMES,
  type RendererFactory,
  type RendererOptions,
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
