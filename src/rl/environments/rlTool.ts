import type { RlTool, StandardSchema, ToolContext } from './toolUse.js';

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
