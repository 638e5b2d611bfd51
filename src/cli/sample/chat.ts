import { createInterface, type Interface } from 'node:readline';
import { merge, Subject } from 'rxjs';
import type { Message } from '../../chat/renderers/core/Message.js';
import { CliError } from '../CliError.js';
import { withService } from '../clients.js';
import { INTERRUPTED, note, type Context } from '../context.js';
import type { Chosen } from '../declare.js';
import { explain } from '../explain.js';
import { count } from '../output/format.js';
import { askedModel, modelOf } from '../modelOf.js';
import type { CHAT } from './command.js';
import { openSampler } from './openSampler.js';
import { hostedReplies, sampledReplies, type Replies } from './replies.js';
import { styleFor } from '../terminal/style.js';

type ChatOptions = Chosen<typeof CHAT>;

const HELP = `/reset          forget the conversation
/system <text>  set the system message, and forget the conversation
/quit           end (or Ctrl-D)
Ctrl-C          cancel the pending reply, or end the chat`;

/** Talks to a model, line by line; lines may also be piped in. */
export default async function chat(context: Context, given: ChatOptions, place?: string): Promise<number> {
  const options = { ...given, model: askedModel(place, given.model) };
  if (options.endpoint !== undefined) {
    const { hostedModel } = await import('../../serve/hosted/hostedModel.js');
    const { name } = await modelOf(options.model);
    return talk(context, options, hostedReplies(await hostedModel(name, options)));
  }
  return withService(context, async (service) => {
    const { sampler, renderer } = await openSampler(context, service, options);
    return talk(context, options, sampledReplies(service, sampler, renderer));
  });
}

async function talk(context: Context, options: ChatOptions, replies: Replies): Promise<number> {
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
  if (terminal) note(context, `Talking to ${options.model}. /help lists the commands; Ctrl-D ends.`);
  const failures = await new Conversation(context, options, replies, lines).run();
  // A user at the terminal has seen the failures. A script needs the exit code.
  return terminal || failures === 0 ? 0 : 1;
}

class Conversation {
  readonly #context: Context;
  #messages: Message[];
  #system: string | undefined;
  #answering = false;
  #ended = false;
  #failures = 0;

  constructor(
    context: Context,
    readonly options: ChatOptions,
    readonly replies: Replies,
    readonly lines: Interface,
  ) {
    // On a terminal the line editor takes Ctrl-C for itself.
    const typed$ = new Subject<void>();
    lines.on('SIGINT', () => typed$.next());
    lines.on('close', () => (this.#ended = true));
    this.#context = { ...context, interrupted$: merge(context.interrupted$, typed$) };
    this.#system = options.system;
    this.#messages = this.#start();
  }

  /** Talks until the end of the input; gives how many lines got no answer. */
  async run(): Promise<number> {
    const listening = this.#context.interrupted$.subscribe(() => {
      if (!this.#answering) this.lines.close();
    });
    this.#prompt();
    for await (const line of this.lines) {
      const text = line.trim();
      if (text === '/quit' || text === '/exit') break;
      if (text.startsWith('/')) this.#obey(text);
      else if (text !== '') await this.#answer(text);
      this.#prompt();
    }
    this.lines.close();
    listening.unsubscribe();
    if (this.#terminal) note(this.#context, '');
    return this.#failures;
  }

  /** The input may end while a reply is pending, and a closed line editor refuses to prompt (from Node 24 on). */
  #prompt(): void {
    if (!this.#ended) this.lines.prompt();
  }

  get #terminal(): boolean {
    return this.#context.stdin.isTTY === true;
  }

  #dim(text: string): string {
    return styleFor(this.#context.stderr).dim(text);
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
    const startedMs = this.#context.now();
    try {
      const { message, tokens, cutOff } = await this.replies(this.#context, messages, { maxTokens, temperature, topP });
      this.#messages = [...messages, message];
      const seconds = (this.#context.now() - startedMs) / 1000;
      if (this.#terminal) note(this.#context, this.#dim(`(${count(tokens, 'token')}, ${seconds.toFixed(1)} s)`));
      if (cutOff) note(this.#context, `(cut off after ${count(maxTokens, 'token')}; --max-tokens allows more)`);
    } catch (error) {
      // The conversation continues without the failed line.
      const interrupted = error instanceof CliError && error.exitCode === INTERRUPTED;
      if (interrupted) return note(this.#context, '(cancelled)');
      this.#failures++;
      const { message, details } = explain(error);
      note(this.#context, `${styleFor(this.#context.stderr).red('Error:')} ${message}`);
      if (details !== undefined) note(this.#context, details);
    } finally {
      this.#answering = false;
    }
  }
}
