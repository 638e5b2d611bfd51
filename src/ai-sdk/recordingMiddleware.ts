import type { CallRecorder } from '../serve/traffic/CallRecorder.js';
import type { RecordedCall } from '../sources/fromRecorded.js';
import { systemUuid } from '../transport/system.js';
import { messageOf } from '../support/messageOf.js';
import { toMessages } from './toMessages.js';
import type { CallOptions, SpecificationVersion } from './types.js';

/** A part of an answer, or of a stream, of any provider. */
interface Part {
  readonly type: string;
}
interface Answered {
  readonly content: readonly Part[];
  readonly finishReason?: unknown;
  readonly usage?: unknown;
  readonly response?: { readonly id?: string };
}
interface Asked {
  /** What the model is asked. */
  readonly params: object;
  /** The model. */
  readonly model: {
    /** Its name. */
    readonly modelId: string;
  };
}

/** A middleware for `wrapLanguageModel` of the AI SDK. */
export interface RecordingMiddleware<V extends SpecificationVersion = 'v4'> {
  /** The version of the AI SDK's middleware interface. */
  readonly specificationVersion: V;
  /** Records a whole answer. The AI SDK calls this. */
  wrapGenerate<R extends Answered>(options: Asked & { doGenerate: () => PromiseLike<R> }): Promise<R>;
  /** Records a streamed answer when it has ended. The AI SDK calls this. */
  wrapStream<P extends Part, R extends { stream: ReadableStream<P> }>(
    options: Asked & { doStream: () => PromiseLike<R> },
  ): Promise<R>;
}

/** Options of `recordingMiddleware`. */
export interface RecordingMiddlewareOptions<V extends SpecificationVersion = 'v4'> {
  /** `'v4'` for the AI SDK 7 (default), `'v3'` for the AI SDK 6. */
  readonly specification?: V;
}

/**
 * Records the calls of any model of the AI SDK, for `fromRecorded`.
 *
 * ```ts
 * const recorder = recordCalls('calls.jsonl');
 * const model = wrapLanguageModel({ model: tinker(sampler), middleware: recordingMiddleware(recorder) });
 * const { text, response } = await generateText({ model, prompt: 'What is LoRA?' });
 * recorder.feedback({ id: response.id, rating: 1 });
 * ```
 * The id of a call is that of its response; a provider that gives none gets one. Headers and provider options are never recorded. A call that
 * fails, breaks off or is cancelled is recorded without a reply, and ends as it would have.
 */
export function recordingMiddleware<V extends SpecificationVersion = 'v4'>(
  recorder: CallRecorder,
  { specification = 'v4' as V }: RecordingMiddlewareOptions<V> = {},
): RecordingMiddleware<V> {
  const begin = ({ params, model }: Asked) => {
    const startedMs = Date.now();
    return (answered: Answered | undefined, id: string, status = answered === undefined ? 500 : 200): void =>
      recorder.record({
        ...{ type: 'call', id, at: new Date(startedMs).toISOString(), api: 'ai-sdk', model: model.modelId },
        ...askedIn(params as CallOptions),
        ...(answered === undefined ? {} : saidIn(answered)),
        ...{ status, latencyMs: Date.now() - startedMs },
      });
  };
  return {
    specificationVersion: specification,
    wrapGenerate: async ({ doGenerate, ...asked }) => {
      const write = begin(asked);
      try {
        const result = await doGenerate();
        const id = result.response?.id ?? systemUuid();
        write(result, id);
        return { ...result, response: { ...result.response, id } };
      } catch (error) {
        write(undefined, systemUuid());
        throw error;
      }
    },
    wrapStream: async ({ doStream, ...asked }) => {
      const write = begin(asked);
      try {
        const result = await doStream();
        return { ...result, stream: result.stream.pipeThrough(collecting(write)) };
      } catch (error) {
        write(undefined, systemUuid());
        throw error;
      }
    },
  };
}

/** Passes parts on, and tells the whole answer at its end, once. */
function collecting<P extends Part>(
  record: (answered: Answered | undefined, id: string, status?: number) => void,
): TransformStream<P, P> {
  const content: Part[] = [];
  let written = false;
  const write = (answered?: Answered, status?: number): void => {
    if (written) return;
    written = true;
    record(answered, (id ??= systemUuid()), status);
  };
  const open = new Map<string, { type: string; text: string }>();
  let id: string | undefined;
  const transformer = {
    transform: (part: P, controller: TransformStreamDefaultController<P>) => {
      const { type, id: own, delta = '' } = part as { type: string; id?: string; delta?: string };
      if (type === 'response-metadata') id = own ?? id;
      if (type === 'text-start' || type === 'reasoning-start') {
        const block = { type: type.slice(0, -'-start'.length), text: '' };
        open.set(own!, block);
        content.push(block);
      }
      const block = type === 'text-delta' || type === 'reasoning-delta' ? open.get(own!) : undefined;
      if (block !== undefined) block.text += delta;
      if (type === 'tool-call') content.push(part);
      if (type === 'finish') {
        if (id === undefined)
          controller.enqueue({ type: 'response-metadata', id: (id = systemUuid()) } as unknown as P);
        write({ content, ...(part as object) });
      }
      if (type === 'error') write();
      controller.enqueue(part);
    },
    flush: () => write(),
    cancel: () => write(undefined, 499),
  };
  // A variable, since TypeScript's declarations lack `cancel`.
  return new TransformStream<P, P>(transformer);
}

function askedIn({ prompt, tools = [], temperature, topP, maxOutputTokens, seed }: CallOptions): Partial<RecordedCall> {
  const params = { temperature, top_p: topP, max_tokens: maxOutputTokens, seed };
  const given = Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined));
  const declared = tools.flatMap((tool) =>
    tool.type === 'function'
      ? [{ name: tool.name, description: tool.description ?? '', parameters: tool.inputSchema }]
      : [],
  );
  try {
    return {
      messages: toMessages(prompt),
      ...(declared.length === 0 ? {} : { tools: declared }),
      ...(Object.keys(given).length === 0 ? {} : { params: given }),
    };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

function saidIn({ content, finishReason, usage }: Answered): Partial<RecordedCall> {
  const texts = (kind: string): string =>
    content.flatMap((part) => (part.type === kind ? [(part as unknown as { text: string }).text] : [])).join('');
  const calls = content.flatMap((part) => {
    const {
      type,
      toolCallId: id,
      toolName: name,
      input,
    } = part as { type: string; toolCallId: string; toolName: string; input: unknown };
    return type === 'tool-call'
      ? [{ id, name, arguments: typeof input === 'string' ? input : JSON.stringify(input) }]
      : [];
  });
  const [reasoning, finish] = [
    texts('reasoning'),
    (finishReason as { unified?: unknown } | undefined)?.unified ?? finishReason,
  ];
  return {
    reply: {
      role: 'assistant',
      content: texts('text'),
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
      ...(calls.length === 0 ? {} : { toolCalls: calls }),
    },
    ...(typeof finish === 'string' ? { finish } : {}),
    ...(usage === undefined ? {} : { usage }),
  };
}
