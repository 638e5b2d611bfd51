import type { ChatDelta } from '../completion/ChatRequest.js';
import { event, type Gateway } from '../http/Endpoint.js';
import { callItem, messageItem, reasoningItem, textPart, type ReasoningForm, type Item } from './items.js';

interface OpenItem {
  readonly kind: 'text' | 'thinking';
  readonly id: string;
  text: string;
}

/** A response as a stream of events: every item is added, grows, and is done. */
export class ResponseWriter {
  /** The items that are done. */
  readonly output: Item[] = [];
  #number = 0;
  #open: OpenItem | undefined;

  constructor(
    private readonly form: ReasoningForm,
    private readonly gateway: Gateway,
  ) {}

  /** The first events, once. */
  begin(response: object): string[] {
    if (this.#number > 0) return [];
    return [this.#send('response.created', { response }), this.#send('response.in_progress', { response })];
  }

  write(delta: Exclude<ChatDelta, { type: 'reply' }>): string[] {
    if (delta.type === 'thinking') return this.#grow('thinking', delta.thinking);
    if (delta.type === 'text') return this.#grow('text', delta.text);
    const before = this.close();
    const item = callItem(delta.call, this.gateway);
    const { name, arguments: json } = delta.call;
    const at = { item_id: item['id'], output_index: this.output.length };
    return [
      ...before,
      this.#added({ ...item, arguments: '', status: 'in_progress' }),
      this.#send('response.function_call_arguments.delta', { ...at, delta: json }),
      this.#send('response.function_call_arguments.done', { ...at, arguments: json, name }),
      this.#done(item),
    ];
  }

  /** Ends the item that is open. */
  close(): string[] {
    const open = this.#open;
    if (open === undefined) return [];
    const { kind, id, text } = open;
    const closing = kind === 'text' ? this.#closeText(text) : this.#closeThinking(text);
    const item = kind === 'text' ? messageItem(id, text) : reasoningItem(id, text, this.form);
    this.#open = undefined;
    return [...closing, this.#done(item)];
  }

  /** The last event. */
  end(response: Readonly<Record<string, unknown>>): string {
    return this.#send(`response.${String(response['status'])}`, { response });
  }

  #grow(kind: OpenItem['kind'], more: string): string[] {
    const events: string[] = [];
    if (this.#open?.kind !== kind) {
      events.push(...this.close());
      this.#open = { kind, id: `${kind === 'text' ? 'msg' : 'rs'}_${this.gateway.newId()}`, text: '' };
      events.push(...(kind === 'text' ? this.#openText(this.#open.id) : this.#openThinking(this.#open.id)));
    }
    this.#open.text += more;
    if (kind === 'text') {
      return [...events, this.#send('response.output_text.delta', { ...this.#place(), delta: more, logprobs: [] })];
    }
    events.push(this.#send('response.reasoning_text.delta', { ...this.#place(), delta: more }));
    if (this.form.summary) {
      events.push(this.#send('response.reasoning_summary_text.delta', { ...this.#summaryPlace(), delta: more }));
    }
    return events;
  }

  #openText(id: string): string[] {
    return [
      this.#added(messageItem(id, '', 'in_progress')),
      this.#send('response.content_part.added', { ...this.#place(), part: textPart('') }),
    ];
  }

  #closeText(text: string): string[] {
    return [
      this.#send('response.output_text.done', { ...this.#place(), text, logprobs: [] }),
      this.#send('response.content_part.done', { ...this.#place(), part: textPart(text) }),
    ];
  }

  #openThinking(id: string): string[] {
    const part = { type: 'summary_text', text: '' };
    return [
      this.#added({ type: 'reasoning', id, summary: [], content: [] }),
      this.#send('response.content_part.added', { ...this.#place(), part: { type: 'reasoning_text', text: '' } }),
      ...(this.form.summary
        ? [this.#send('response.reasoning_summary_part.added', { ...this.#summaryPlace(), part })]
        : []),
    ];
  }

  #closeThinking(text: string): string[] {
    const part = { type: 'summary_text', text };
    return [
      this.#send('response.reasoning_text.done', { ...this.#place(), text }),
      this.#send('response.content_part.done', { ...this.#place(), part: { type: 'reasoning_text', text } }),
      ...(this.form.summary
        ? [
            this.#send('response.reasoning_summary_text.done', { ...this.#summaryPlace(), text }),
            this.#send('response.reasoning_summary_part.done', { ...this.#summaryPlace(), part }),
          ]
        : []),
    ];
  }

  #place(): object {
    return { item_id: this.#open!.id, output_index: this.output.length, content_index: 0 };
  }

  #summaryPlace(): object {
    return { item_id: this.#open!.id, output_index: this.output.length, summary_index: 0 };
  }

  #added(item: Item): string {
    return this.#send('response.output_item.added', { output_index: this.output.length, item });
  }

  #done(item: Item): string {
    const sent = this.#send('response.output_item.done', { output_index: this.output.length, item });
    this.output.push(item);
    return sent;
  }

  #send(type: string, rest: object): string {
    return event({ type, sequence_number: this.#number++, ...rest }, type);
  }
}
