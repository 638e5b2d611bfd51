import type { Message, ToolSpec } from '../../../chat/renderers/core/Message.js';
import { withTools } from '../../../chat/renderers/tools/withTools.js';
import { ValidationError } from '../../../wire/tinkerError.js';

interface MayDeclareTools {
  declareTools?(tools: readonly ToolSpec[], systemPrompt?: string): Message[];
}

/** A conversation with the tools of its row, in the renderer's own words. @throws ValidationError if it has none for them. */
export function declareTools(
  renderer: MayDeclareTools,
  messages: readonly Message[],
  tools: readonly ToolSpec[] | undefined,
): readonly Message[] {
  const declare = (list: readonly ToolSpec[], systemPrompt?: string): Message[] => {
    if (renderer.declareTools !== undefined) return renderer.declareTools(list, systemPrompt);
    throw new ValidationError('the conversation has tools, and the renderer has no way to declare any');
  };
  return withTools({ declareTools: declare }, messages, tools);
}
