import { catchError, concatMap, defer, map, type Observable, of } from 'rxjs';
import { toObservable } from '../../support/toObservable.js';
import type { Message, ToolCall } from '../../chat/renderers/core/Message.js';
import type { StandardResult, ToolContext, ToolSet } from './toolUse.js';

/** The message that answers a call. */
export interface CallResult {
  readonly message: Message;
  readonly isError: boolean;
}

/** Makes a call the model asked for. Whatever goes wrong is said in the message; it never fails. */
export function callTool<T>(tools: ToolSet<T>, call: ToolCall, context: ToolContext<T>): Observable<CallResult> {
  return defer(() => {
    if (!Object.hasOwn(tools, call.name)) {
      throw new Error(`there is no tool ${call.name}; there are ${Object.keys(tools).join(', ')}`);
    }
    const { inputSchema, execute } = tools[call.name]!;
    return toObservable<StandardResult<unknown>>(inputSchema['~standard'].validate(argumentsOf(call))).pipe(
      concatMap((result) => {
        if (result.issues !== undefined) throw new Error(`bad arguments: ${result.issues.map(issueText).join('; ')}`);
        return toObservable<unknown>(execute(result.value as never, context));
      }),
    );
  }).pipe(
    map((output) => ({ message: answerTo(call, textOf(output)), isError: false })),
    catchError((error: unknown) =>
      of({
        message: answerTo(call, `Error: ${error instanceof Error ? error.message : String(error)}`),
        isError: true,
      }),
    ),
  );
}

/** The message that answers a call. */
export function answerTo(call: ToolCall | undefined, content: string): Message {
  return {
    ...{ role: 'tool', content },
    ...(call?.id === undefined ? {} : { toolCallId: call.id }),
    ...(call === undefined ? {} : { name: call.name }),
  };
}

function argumentsOf({ arguments: text }: ToolCall): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`the arguments are not JSON: ${(error as Error).message}`);
  }
}

const textOf = (output: unknown): string => (typeof output === 'string' ? output : (JSON.stringify(output) ?? ''));

const issueText = ({
  message,
  path,
}: {
  readonly message: string;
  readonly path?: readonly unknown[] | undefined;
}): string => {
  if (path === undefined || path.length === 0) return message;
  const names = path.map((part) =>
    String(typeof part === 'object' && part !== null && 'key' in part ? part.key : part),
  );
  return `${names.join('.')}: ${message}`;
};
