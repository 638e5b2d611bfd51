import { concatMap, defer, from, map, type Observable, of, reduce } from 'rxjs';
import { checkAtLeast } from '../../support/checks.js';
import type { ToolSpec } from '../../chat/renderers/core/Message.js';
import type { SamplingClient } from '../../client/SamplingClient.js';
import { conversation, type ConversationOptions, type Reply } from './conversation.js';
import { answerTo, type CallResult, callTool } from './callTool.js';
import type { RolloutContext, RolloutHook } from '../sampling/rollout.js';

/** A validator as [Standard Schema](https://standardschema.dev) describes it: one of Zod, Valibot, ArkType, Effect, … */
export interface StandardSchema<I = unknown> {
  /** The schema, as the Standard Schema specification wants it. */
  readonly '~standard': {
    /** Version of the specification. */
    readonly version: 1;
    /** The library the schema comes from, such as `zod`. */
    readonly vendor: string;
    /** Checks a value and returns it, or what is wrong with it. */
    readonly validate: (value: unknown) => StandardResult<I> | Promise<StandardResult<I>>;
    /** The schema as JSON Schema, where the library can say it. */
    readonly jsonSchema?: {
      /** The JSON schema of what the tool accepts. */
      readonly input: (options: { readonly target: string }) => Readonly<Record<string, unknown>>;
    };
    /** Carries the types for the compiler; absent at run time. */
    readonly types?:
      | {
          /** The type before validation. */
          readonly input: unknown;
          /** The type after validation. */
          readonly output: I;
        }
      | undefined;
  };
}

/** What a validator finds: the value, or what is wrong with it. */
export type StandardResult<I> =
  | {
      /** The value, if it is valid. */
      readonly value: I;
      /** Absent if it is valid. */
      readonly issues?: undefined;
    }
  | {
      /** What is wrong with it. */
      readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[];
    };

/** What a tool is told beside its input. */
export interface ToolContext<T = unknown> extends RolloutContext {
  /** The task of the rollout. */
  readonly task: T;
}

/** A tool, declared as in the AI SDK. Made by {@link rlTool}, which infers what it takes, or written out. */
export interface RlTool<I = never, T = unknown> {
  /** What it does, for the model. */
  readonly description: string;
  /** What it takes. */
  readonly inputSchema: StandardSchema;
  /** The same as JSON Schema, for the model; needed where `inputSchema` cannot say it. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  /** What it does: a text, or anything JSON can write; at once or later. A throw becomes a tool message. */
  readonly execute: (input: I, context: ToolContext<T>) => unknown;
}

/** Options of `toolUse`. */
export interface ToolUseOptions<T> extends Omit<ConversationOptions<T>, 'reply'> {
  /** The tools by name: one set for all rollouts, or a function that makes a set for each rollout, so that it can have its own state. */
  readonly tools: ToolSet<T> | ((task: T, context: RolloutContext) => ToolSet<T>);
  /** What the model is told before its tools. Default: nothing. */
  readonly system?: string;
  /** Calls of a whole conversation: ≥ 1. Default 30. */
  readonly maxToolCalls?: number;
  /** Calls that could not be made (no such tool, bad arguments, a throw), one after the other: ≥ 0. Default 2. */
  readonly maxToolErrors?: number;
}

/** Tools by name. */
export type ToolSet<T = unknown> = Readonly<Record<string, RlTool<never, T>>>;

/**
 * Tasks that the model works on with tools, until it answers without a call or a limit is reached.
 *
 * ```ts
 * const agent = toolUse<Sum>({
 *   renderer,
 *   tools: {
 *     add: rlTool({
 *       description: 'Adds two numbers.',
 *       inputSchema: z.object({ a: z.number(), b: z.number() }),
 *       execute: ({ a, b }) => a + b,
 *     }),
 *   },
 *   start: ({ question }) => [{ role: 'user', content: question }],
 *   reward: ({ answer }, { sum }) => (answer.text.includes(String(sum)) ? 1 : 0),
 * });
 * ```
 * Calls of one answer are made one after the other. A call that cannot be read, of no such tool, with arguments that do not fit, or
 * whose `execute` throws, becomes a tool message that says what was wrong; more than `maxToolErrors` of them in a row end the
 * conversation. Metrics: `tool_calls`, `tool_errors`.
 */
export function toolUse<T, S = SamplingClient>(options: ToolUseOptions<T>): RolloutHook<T, S> {
  const { renderer, tools, system, start, maxToolCalls = 30, maxToolErrors = 2 } = options;
  checkAtLeast({ maxToolCalls }, 1);
  checkAtLeast({ maxToolErrors }, 0);
  if (typeof tools !== 'function') specsOf(tools);
  return (task, policy, context) =>
    defer(() => {
      const set = typeof tools === 'function' ? tools(task, context) : tools;
      const declared = renderer.declareTools(specsOf(set), system);
      let calls = 0;
      let wrong = 0;
      const agent = conversation<T, S>({
        ...options,
        start: (own) => [...declared, ...start(own)],
        reply: ({ answer }): Observable<Reply | undefined> => {
          const { toolCalls, unparsedToolCalls } = answer;
          if (toolCalls.length + unparsedToolCalls.length === 0) return of(undefined);
          const unread = unparsedToolCalls.map(({ error }): CallResult => ({
            message: answerTo(undefined, `Error: the call could not be read: ${error}`),
            isError: true,
          }));
          const room = Math.max(0, maxToolCalls - calls);
          return from(toolCalls.slice(0, room)).pipe(
            concatMap((call) => callTool(set, call, { ...contextOf(context), task })),
            reduce((results: readonly CallResult[], result) => [...results, result], unread),
            map((results): Reply => {
              calls += toolCalls.length;
              for (const { isError } of results) wrong = isError ? wrong + 1 : 0;
              const metrics = {
                tool_calls: results.length,
                tool_errors: results.filter(({ isError }) => isError).length,
              };
              if (toolCalls.length > room) return { stop: 'max_tool_calls', metrics };
              if (wrong > maxToolErrors) return { stop: 'tool_errors', metrics };
              return { messages: results.map(({ message }) => message), metrics };
            }),
          );
        },
      });
      return agent(task, policy, context);
    });
}

/** A context is read late: its signal is made when it is first asked for. */
function contextOf(context: RolloutContext): RolloutContext {
  return {
    seed: context.seed,
    index: context.index,
    get signal() {
      return context.signal;
    },
  };
}

/** @throws TypeError for a tool whose arguments cannot be described to the model. */
function specsOf(tools: ToolSet<never>): ToolSpec[] {
  return Object.entries(tools).map(([name, tool]) => ({
    name,
    description: tool.description,
    parameters: tool.parameters ?? jsonSchemaOf(name, tool.inputSchema),
  }));
}

/** What a tool takes, as JSON Schema. @throws TypeError if its validator cannot say it. */
export function jsonSchemaOf(name: string, schema: StandardSchema): Readonly<Record<string, unknown>> {
  const { jsonSchema, vendor } = schema['~standard'];
  if (jsonSchema === undefined) {
    throw new TypeError(
      `tool ${name}: schemas of ${vendor} have no JSON Schema that can be read here: pass it as parameters`,
    );
  }
  // What it is written in is nothing to the model, and costs tokens of every prompt.
  const { $schema: _, ...own } = jsonSchema.input({ target: 'draft-07' });
  return own;
}

/**
 * A tool as it is: it only tells TypeScript what `execute` takes, from `inputSchema`.
 *
 * ```ts
 * rlTool({ description: 'Adds.', inputSchema: z.object({ a: z.number(), b: z.number() }), execute: ({ a, b }) => a + b })
 * ```
 */
export function rlTool<I, T = unknown>(
  tool: Omit<RlTool<I, T>, 'inputSchema' | 'execute'> & {
    readonly inputSchema: StandardSchema<I>;
    readonly execute: (input: I, context: ToolContext<T>) => unknown;
  },
): RlTool<I, T> {
  return tool;
}
