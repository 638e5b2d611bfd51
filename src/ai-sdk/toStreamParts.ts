import { concat, concatMap, defer, from, type Observable } from 'rxjs';
import type { ChatDelta } from '../serve/completion/ChatRequest.js';
import { toFinish, toMetadata, toUsage } from './toResult.js';
import type { StreamPart, Warning } from './types.js';

/** A reply as it arrives in the AI SDK's parts: each stretch of text or reasoning has a start, deltas and an end. */
export function toStreamParts(
  deltas: Observable<ChatDelta>,
  modelId: string,
  warnings: Warning[],
): Observable<StreamPart> {
  return defer(() => {
    let open: { readonly kind: 'text' | 'reasoning'; readonly id: string } | undefined;
    let blocks = 0;
    const close = (): StreamPart[] => {
      if (open === undefined) return [];
      const { kind, id } = open;
      open = undefined;
      return [{ type: `${kind}-end`, id }];
    };
    const say = (kind: 'text' | 'reasoning', delta: string): StreamPart[] => {
      const parts: StreamPart[] = [];
      if (open?.kind !== kind) {
        parts.push(...close());
        open = { kind, id: String(blocks++) };
        parts.push({ type: `${kind}-start`, id: open.id });
      }
      return [...parts, { type: `${kind}-delta`, id: open.id, delta }];
    };
    const read = (delta: ChatDelta): StreamPart[] => {
      switch (delta.type) {
        case 'text':
          return say('text', delta.text);
        case 'thinking':
          return say('reasoning', delta.thinking);
        case 'tool-call': {
          const { id, name: toolName, arguments: input } = delta.call;
          return [
            ...close(),
            { type: 'tool-input-start', id, toolName },
            { type: 'tool-input-delta', id, delta: input },
            { type: 'tool-input-end', id },
            { type: 'tool-call', toolCallId: id, toolName, input },
          ];
        }
        case 'reply': {
          const { reply } = delta;
          const finishReason = toFinish(reply);
          return [
            ...close(),
            { type: 'finish', usage: toUsage(reply), finishReason, providerMetadata: toMetadata(reply) },
          ];
        }
      }
    };
    const opening: StreamPart[] = [
      { type: 'stream-start', warnings },
      { type: 'response-metadata', modelId },
    ];
    return concat(from(opening), deltas.pipe(concatMap((delta) => from(read(delta)))));
  });
}
