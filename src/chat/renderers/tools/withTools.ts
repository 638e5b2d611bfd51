import { textOf } from '../core/content.js';
import type { Message, ToolSpec } from '../core/Message.js';
import type { Renderer } from '../core/Renderer.js';
import { RendererError } from '../core/RendererError.js';

/**
 * A conversation that declares its tools in the family's own words: the tools of a chat file's row, put where the renderer wants them. A system
 * message at the beginning is joined with the declaration.
 *
 * @throws RendererError if the family has no tools, or the messages declare some themselves
 */
export function withTools(
  renderer: Pick<Renderer, 'declareTools'>,
  messages: readonly Message[],
  tools: readonly ToolSpec[] | undefined,
): readonly Message[] {
  if (tools === undefined || tools.length === 0) return messages;
  if (messages.some((message) => message.tools !== undefined)) {
    throw new RendererError('tools are declared twice: beside the messages and in one of them');
  }
  const [first] = messages;
  const joined = first?.role === 'system' && isText(first) ? first : undefined;
  const declared = renderer.declareTools(tools, joined === undefined ? undefined : textOf(joined));
  // With `trainOn: 'customized'` every message says whether it is trained.
  const { trainable = false } = joined ?? {};
  const flag = messages.some((message) => message.trainable !== undefined) ? { trainable } : {};
  const weight = joined?.weight === undefined ? {} : { weight: joined.weight };
  return [
    ...declared.map((message): Message => ({ ...message, ...flag, ...weight })),
    ...(joined === undefined ? messages : messages.slice(1)),
  ];
}

const isText = ({ content }: Message): boolean =>
  typeof content === 'string' || content.every((part) => part.type === 'text');
