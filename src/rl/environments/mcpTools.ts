import type { ToolSet } from './toolUse.js';

/** A tool as an MCP server lists it. */
interface McpTool {
  /** Its name. */
  readonly name: string;
  /** What it does. */
  readonly description?: string | undefined;
  /** The JSON schema of what it takes. */
  readonly inputSchema: object;
}

/** What `mcpTools` needs of an MCP client. `Client` of `@modelcontextprotocol/sdk` is one. */
export interface McpClient {
  /** The tools of the server, page by page. */
  listTools(params?: { cursor?: string }): Promise<{
    /** The tools of this page. */
    readonly tools: readonly McpTool[];
    /** Where the next page begins; absent on the last. */
    readonly nextCursor?: string | undefined;
  }>;
  /** Calls a tool. */
  callTool(
    params: { name: string; arguments?: Record<string, unknown> },
    resultSchema?: undefined,
    options?: { signal?: AbortSignal },
  ): Promise<unknown>;
}

/** Options of `mcpTools`. */
export interface McpToolsOptions {
  /** The tools that the model may use, by name. Default: all of the server. */
  readonly only?: readonly string[];
  /** Stands before every name, so that tools of several servers do not collide: `files_`. Default: nothing. */
  readonly prefix?: string;
}

/**
 * The tools of an MCP server, for `toolUse`: any such server is an environment.
 *
 * ```ts
 * const agent = toolUse<string>({
 *   renderer,
 *   tools: await mcpTools(mcpClient, { only: ['get-sum'] }),
 *   start: (question) => [{ role: 'user', content: question }],
 *   reward: ({ answer }) => (answer.text.includes('5') ? 1 : 0),
 * });
 * ```
 * The server checks the arguments. Its result is written as text; a result that says it is an error, and a call that fails, become a tool message that
 * says so. A call is cancelled on the server when its rollout is no longer needed. All rollouts share the client and the state of its
 * server; to separate them, give each rollout another client in `tools: (task) => …` of `toolUse`.
 *
 * @throws Error if the server lacks a tool of `only`
 */
export async function mcpTools(client: McpClient, { only, prefix = '' }: McpToolsOptions = {}): Promise<ToolSet> {
  const found: McpTool[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    found.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  const missing = only?.find((wanted) => !found.some(({ name }) => name === wanted));
  if (missing !== undefined)
    throw new Error(`the MCP server has no tool ${missing}; there are ${found.map(({ name }) => name).join(', ')}`);
  return Object.fromEntries(
    found
      .filter(({ name }) => only?.includes(name) ?? true)
      .map(({ name, description = '', inputSchema }): [string, ToolSet[string]] => [
        prefix + name,
        {
          description,
          // The server's own words, without what only validators read.
          parameters: withoutSchemaName(inputSchema),
          inputSchema: { '~standard': { version: 1, vendor: 'mcp', validate: (value) => ({ value }) } },
          execute: async (input: Record<string, unknown>, { signal }) =>
            textOf(await client.callTool({ name, arguments: input }, undefined, { signal })),
        },
      ]),
  );
}

const withoutSchemaName = (schema: object): Readonly<Record<string, unknown>> => {
  const { $schema: _, ...rest } = schema as Record<string, unknown>;
  return rest;
};

interface McpResult {
  readonly isError?: boolean;
  readonly structuredContent?: unknown;
  readonly content?: readonly McpContent[];
  /** What servers of the first protocol version gave. */
  readonly toolResult?: unknown;
}
interface McpContent {
  readonly type: string;
  readonly text?: string;
  /** Of a link to a resource. */
  readonly uri?: string;
  readonly resource?: { readonly text?: string; readonly uri?: string };
}

/** A result as text for the model. @throws Error if the server says that it is one */
function textOf(result: unknown): string {
  const { isError = false, content = [], structuredContent, toolResult } = result as McpResult;
  const said = content.map(partText).join('\n');
  const data = structuredContent ?? toolResult;
  const text = said === '' && data !== undefined ? JSON.stringify(data) : said;
  if (isError) throw new Error(text);
  return text;
}

function partText({ type, text, resource, uri = resource?.uri }: McpContent): string {
  if (type === 'text') return text ?? '';
  return resource?.text ?? `[${type}${uri === undefined ? '' : ` ${uri}`}]`;
}
