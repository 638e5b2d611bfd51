import type { ChatDelta } from '../completion/ChatRequest.js';
import { event } from '../http/Endpoint.js';

const START = {
  text: { type: 'text', text: '' },
  thinking: { type: 'thinking', thinking: '', signature: '' },
};

/** A message as a stream of events: every block starts, grows, and stops. */
export class MessageWriter {
  #index = -1;
  #begun = false;
  #open: 'text' | 'thinking' | undefined;

  /** The first event, once. */
  begin(message: object): string[] {
    if (this.#begun) return [];
    this.#begun = true;
    return [send('message_start', { message })];
  }

  write(delta: Exclude<ChatDelta, { type: 'reply' }>): string[] {
    if (delta.type === 'text') return this.#grow('text', { type: 'text_delta', text: delta.text });
    if (delta.type === 'thinking') return this.#grow('thinking', { type: 'thinking_delta', thinking: delta.thinking });
    const { id, name, arguments: json } = delta.call;
    return [
      ...this.#close(),
      this.#start({ type: 'tool_use', id, name, input: {} }),
      this.#delta({ type: 'input_json_delta', partial_json: json }),
      this.#stop(),
    ];
  }

  /** The last events. */
  end(ending: object, usage: object): string[] {
    return [...this.#close(), send('message_delta', { delta: ending, usage }), send('message_stop', {})];
  }

  #grow(kind: 'text' | 'thinking', change: object): string[] {
    if (this.#open === kind) return [this.#delta(change)];
    const before = this.#close();
    this.#open = kind;
    return [...before, this.#start(START[kind]), this.#delta(change)];
  }

  #close(): string[] {
    if (this.#open === undefined) return [];
    this.#open = undefined;
    return [this.#stop()];
  }

  #start(block: object): string {
    return send('content_block_start', { index: ++this.#index, content_block: block });
  }

  #delta(delta: object): string {
    return send('content_block_delta', { index: this.#index, delta });
  }

  #stop(): string {
    return send('content_block_stop', { index: this.#index });
  }
}

const send = (type: string, rest: object): string => event({ type, ...rest }, type);
