import { createInterface, type Interface } from 'node:readline';
import { merge, Subject } from 'rxjs';
import type { Message } from '../../chat/renderers/Message.js';
import type { Renderer } from '../../chat/renderers/Renderer.js';
import type { SamplingClient } from '../../client/index.js';
import { ask } from '../ask.js';
import { CliError } from '../CliError.js';
import { withService } from '../clients.js';
import { INTERRUPTED, note, type Context } from '../context.js';
import { explain } from '../explain.js';
import { openSampler } from '../openSampler.js';
import { styleFor } from '../style.js';
import { safeText } from '../textWidth.js';
import { waitFor } from '../waitFor.js';

export interface ChatOptions {
  readonly model: string;
  readonly system?: string;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP: number;
  readonly renderer?: string;
}

const HELP = `/reset          forget the conversation
/system <text>  set the system message, and forget the conversation
/quit           end (or Ctrl-D)
Ctrl-C          cancel the reply; without one under way, end`;

/** Talks to a model, line by line; lines may also be piped in. */
export default async function chat(context: Context, options: ChatOptions): Promise<void> {
  await withService(context, async (service) => {
    const { sampler, renderer } = await openSampler(context, service, options);
    const terminal = context.stdin.isTTY === true;
    const lines = createInterface({
      input: context.stdin,
      ...(terminal
        ? {
            output: context.stdout as NodeJS.WritableStream,
            terminal,
            prompt: `${styleFor(context.stdout).cyan('you')} › `,
          }
        : {}),
    });
    if (terminal) note(context, `Talking to ${options.model}. /help shows what there is to say; Ctrl-D ends.`);
    await new Conversation(context, options, sampler, renderer, lines).run();
  });
}

class Conversation {
  readonly #context: Context;
  #messages: Message[];
  #system: string | undefined;
  #answering = false;

  constructor(
    context: Context,
    readonly options: ChatOptions,
    readonly sampler: SamplingClient,
    readonly renderer: Renderer,
    readonly lines: Interface,
  ) {
    // On a terminal the line editor takes Ctrl-C for itself.
    const typed$ = new Subject<void>();
    lines.on('SIGINT', () => typed$.next());
    this.#context = { ...context, interrupted$: merge(context.interrupted$, typed$) };
    this.#system = options.system;
    this.#messages = this.#start();
  }

  async run(): Promise<void> {
    const listening = this.#context.interrupted$.subscribe(() => {
      if (!this.#answering) this.lines.close();
    });
    this.lines.prompt();
    for await (const line of this.lines) {
      const text = line.trim();
      if (text === '/quit' || text === '/exit') break;
      if (text.startsWith('/')) this.#obey(text);
      else if (text !== '') await this.#answer(text);
      this.lines.prompt();
    }
    this.lines.close();
    listening.unsubscribe();
    if (this.#context.stdin.isTTY === true) note(this.#context, '');
  }

  #start(): Message[] {
    return this.#system === undefined ? [] : [{ role: 'system', content: this.#system }];
  }

  #obey(text: string): void {
    const [command, ...words] = text.split(' ');
    if (command === '/system') this.#system = words.join(' ') || undefined;
    else if (command !== '/reset') return note(this.#context, HELP);
    this.#messages = this.#start();
    note(this.#context, 'A new conversation.');
  }

  async #answer(text: string): Promise<void> {
    const { maxTokens, temperature, topP } = this.options;
    const messages: Message[] = [...this.#messages, { role: 'user', content: text }];
    this.#answering = true;
    try {
      const reply = ask(this.sampler, this.renderer, messages, { maxTokens, temperature, topP });
      const { sequences } = await waitFor(this.#context, 'thinking', reply).catch((error: unknown) => {
        reply.cancel();
        throw error;
      });
      const { message, thinking, text: said } = this.renderer.parse(sequences[0]?.tokens ?? []);
      this.#messages = [...messages, message];
      this.#print(said, thinking);
      if (sequences[0]?.stopReason === 'length') note(this.#context, `(cut off after ${maxTokens} tokens)`);
    } catch (error) {
      // The conversation goes on as if the line had not been said.
      const interrupted = error instanceof CliError && error.exitCode === INTERRUPTED;
      note(this.#context, interrupted ? '(cancelled)' : `Error: ${explain(error).message}`);
    } finally {
      this.#answering = false;
    }
  }

  #print(text: string, thinking: string): void {
    const { stdout } = this.#context;
    const { dim } = styleFor(stdout);
    if (thinking !== '') stdout.write(`${dim(safeText(thinking.trim()))}\n`);
    stdout.write(`${safeText(text)}\n`);
  }
}
