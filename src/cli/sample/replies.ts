import { lastValueFrom, map, merge, type Observable, takeWhile, tap } from 'rxjs';
import type { Message } from '../../chat/renderers/core/Message.js';
import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import type { SamplingClient, ServiceClient } from '../../client/index.js';
import type { HostedModel } from '../../serve/hosted/streamHosted.js';
import { safeText } from '../../support/terminal/textWidth.js';
import { CliError } from '../CliError.js';
import { INTERRUPTED, type Context } from '../context.js';
import { ask } from '../terminal/ask.js';
import { styleFor } from '../terminal/style.js';
import { waitFor } from '../terminal/waitFor.js';

interface Settings {
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP: number;
}

/** What came of a line: the message to remember, and what to tell about it. */
interface Replied {
  readonly message: Message;
  readonly tokens: number;
  readonly cutOff: boolean;
}

/** Asks for a reply and prints it. */
export type Replies = (context: Context, messages: readonly Message[], settings: Settings) => Promise<Replied>;

/** Replies of a sampler, which come whole. */
export const sampledReplies =
  (service: ServiceClient, sampler: SamplingClient, renderer: Renderer): Replies =>
  async (context, messages, settings) => {
    const reply = ask(sampler, renderer, messages, settings);
    // Until the reply is there, there is only the time to show, and what it waits for.
    const { sequences } = await waitFor(context, 'thinking', reply, service.events$).catch((error: unknown) => {
      reply.cancel();
      throw error;
    });
    const tokens = sequences[0]?.tokens ?? [];
    const { message, thinking, text } = renderer.parse(tokens);
    const { dim } = styleFor(context.stdout);
    if (thinking !== '') context.stdout.write(`${dim(safeText(thinking.trim()))}\n`);
    context.stdout.write(`${safeText(text)}\n`);
    return { message, tokens: tokens.length, cutOff: sequences[0]?.stopReason === 'length' };
  };

/** Replies of an inference endpoint, printed while they are sampled. */
export const hostedReplies =
  (model: HostedModel): Replies =>
  async ({ stdout, interrupted$ }, messages, samplingParams) => {
    const { streamHosted } = await import('../../serve/hosted/streamHosted.js');
    const { dim } = styleFor(stdout);
    let thinks = false;
    const stopped: Observable<never> = interrupted$.pipe(
      map(() => {
        throw new CliError('Interrupted', { exitCode: INTERRUPTED });
      }),
    );
    const last = await lastValueFrom(
      merge(streamHosted(model, { messages, samplingParams }), stopped).pipe(
        tap((delta) => {
          if (delta.type === 'thinking') stdout.write(dim(safeText(delta.thinking)));
          if (delta.type === 'text') stdout.write(`${thinks ? '\n' : ''}${safeText(delta.text)}`);
          thinks = delta.type === 'thinking';
        }),
        takeWhile(({ type }) => type !== 'reply', true),
      ),
    );
    stdout.write('\n');
    if (last.type !== 'reply') throw new CliError('The reply broke off');
    const { text, sampledTokens = 0, stopReason } = last.reply;
    return { message: { role: 'assistant', content: text }, tokens: sampledTokens, cutOff: stopReason === 'length' };
  };
