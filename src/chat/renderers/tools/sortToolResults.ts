import type { Message } from '../core/Message.js';

/** Neighbouring results in the order of the calls they answer, where every one names a call of the reply before them. */
export function sortToolResults(messages: readonly Message[]): Message[] {
  const sorted: Message[] = [];
  for (let at = 0; at < messages.length;) {
    let end = at;
    while (messages[end]?.role === 'tool') end++;
    if (end === at) {
      sorted.push(messages[at]!);
      at++;
      continue;
    }
    const block = messages.slice(at, end);
    const calls = messages[at - 1]?.toolCalls?.map(({ id }) => id) ?? [];
    const ids = block.map(({ toolCallId }) => toolCallId);
    const clear = (list: readonly (string | undefined)[]): boolean =>
      list.every(Boolean) && new Set(list).size === list.length;
    if (clear(calls) && clear(ids) && ids.every((id) => calls.includes(id))) {
      block.sort((a, b) => calls.indexOf(a.toolCallId) - calls.indexOf(b.toolCallId));
    }
    sorted.push(...block);
    at = end;
  }
  return sorted;
}
