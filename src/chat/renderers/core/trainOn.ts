import type { Message } from './Message.js';
import type { TrainOn } from './Renderer.js';
import { RendererError } from './RendererError.js';
import type { RenderContext } from './RenderContext.js';

/** Throws a `RendererError` unless the `trainable` flags are there exactly when they are read. */
export function checkTrainable(messages: readonly Message[], trainOn: TrainOn): void {
  messages.forEach((message, index) => {
    const flagged = message.trainable !== undefined;
    if (trainOn === 'customized' && !flagged)
      throw new RendererError(`trainOn is 'customized' and message ${index} has no trainable flag`);
    if (trainOn !== 'customized' && flagged) {
      throw new RendererError(
        `message ${index} has a trainable flag, which only trainOn: 'customized' reads (it is '${trainOn}')`,
      );
    }
  });
}

/** Whether a message carries loss. `turnStart` is the index of the first message of the turn being produced. */
export function isTrained(message: Message, context: RenderContext, trainOn: TrainOn, turnStart: number): boolean {
  if (message.weight === 0) return false;
  const assistant = message.role === 'assistant';
  switch (trainOn) {
    case 'last_assistant_message':
      return assistant && context.isLast;
    case 'last_assistant_turn':
      return assistant && context.index >= turnStart;
    case 'all_assistant_messages':
      return assistant;
    case 'all_messages':
    case 'all_tokens':
      return true;
    case 'all_user_and_system_messages':
      return message.role === 'user' || message.role === 'system';
    case 'customized':
      return message.trainable === true;
    default:
      throw new RendererError(`unknown trainOn '${String(trainOn)}'`);
  }
}
