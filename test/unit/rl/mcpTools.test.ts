/** The tools of MCP servers, through the official client. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { firstValueFrom, from } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { mcpTools, rollouts, toolUse, type McpClient } from '../../../src/rl/index.js';
import { call, renderer, scripted } from '../../loopback/support/scriptedSampler.js';

let client: Client | undefined;
let cancelled = false;
afterEach(() => client?.close());

async function connected(): Promise<Client> {
  const server = new McpServer({ name: 'numbers', version: '1.0.0' });
  const text = (said: string, isError = false) => ({ content: [{ type: 'text' as const, text: said }], isError });
  const inputSchema = { a: z.number(), b: z.number() };
  server.registerTool('add', { description: 'Adds.', inputSchema }, ({ a, b }) => text(String(a + b)));
  server.registerTool('fail', { inputSchema }, () => text('out of numbers', true));
  server.registerTool('look', { inputSchema: {} }, () => ({
    content: [
      { type: 'text', text: 'A file:' },
      { type: 'resource', resource: { uri: 'file:///a.txt', text: 'its text' } },
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
    ],
  }));
  server.registerTool('throw', { inputSchema: {} }, () => {
    throw new Error('no disk left');
  });
  server.registerTool('hang', { inputSchema: {} }, (_, { signal }) => {
    signal.addEventListener('abort', () => (cancelled = true));
    return new Promise(() => undefined);
  });
  server.registerTool('draw', { inputSchema: {} }, () => ({
    content: [
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
      { type: 'audio', data: 'aGk=', mimeType: 'audio/wav' },
      { type: 'resource_link', uri: 'file:///b.bin', name: 'b' },
    ],
  }));
  server.registerTool('quiet', { inputSchema: {} }, () => ({ content: [] }));
  const [mine, theirs] = InMemoryTransport.createLinkedPair();
  client = new Client({ name: 'test', version: '1.0.0' });
  await Promise.all([server.connect(theirs), client.connect(mine)]);
  return client;
}

describe('mcpTools', () => {
  it('declares the tools of a server with their schemas', async () => {
    const tools = await mcpTools(await connected(), { prefix: 'n_' });
    expect(Object.keys(tools)).toStrictEqual(
      ['add', 'fail', 'look', 'throw', 'hang', 'draw', 'quiet'].map((name) => `n_${name}`),
    );
    const { description, parameters } = tools['n_add']!;
    expect(description).toBe('Adds.');
    expect(parameters).toMatchObject({ type: 'object', required: ['a', 'b'] });
    expect(parameters).not.toHaveProperty('$schema');
  });

  it('works as an environment: results and errors of the server are messages for the model', async () => {
    const tools = await mcpTools(await connected());
    const agent = toolUse<string>({
      ...{ renderer, tools, start: (content) => [{ role: 'user', content }] },
      reward: ({ answer }) => (answer.text === '5' ? 1 : 0),
    });
    const replies = [
      call('add', { a: 2, b: 'x' }),
      call('fail', { a: 2, b: 3 }),
      call('look', {}),
      call('add', { a: 2, b: 3 }),
      '5',
    ];
    const made = scripted(replies);
    const { trajectories } = await firstValueFrom(
      from(['2 and 3?']).pipe(rollouts(agent, { policy: made.sampler as never, group: 1 })),
    );
    expect(trajectories).toMatchObject([{ reward: 1, metrics: { tool_calls: 4, tool_errors: 2 } }]);
    const last = made.prompts().at(-1)!;
    expect(last).toMatch(/<\|tool\|>Error: [^<]*expected number/i);
    expect(last).toContain('<|tool|>Error: out of numbers<|end|>');
    expect(last).toContain('<|tool|>A file:\nits text\n[image]<|end|>');
    expect(last).toContain('<|tool|>5<|end|>');
  });

  it('says that a tool threw, and that the server is gone', async () => {
    const mcp = await connected();
    const tools = await mcpTools(mcp);
    const context = { signal: new AbortController().signal, seed: 0, index: 0, task: undefined };
    await expect(tools['throw']!.execute({} as never, context)).rejects.toThrow('no disk left');
    await mcp.close();
    await expect(tools['throw']!.execute({} as never, context)).rejects.toThrow(/closed|not connected/i);
  });

  it('a tool that hangs is cancelled on the server when the rollout runs out of time, and fails only that one', async () => {
    const tools = await mcpTools(await connected());
    const agent = toolUse<string>({
      ...{ renderer, tools, start: (content) => [{ role: 'user', content }], reward: () => 1 },
    });
    const made = scripted([call('hang', {}), 'done']);
    const { trajectories, failures } = await firstValueFrom(
      from(['Wait.']).pipe(rollouts(agent, { policy: made.sampler as never, group: 1, timeoutMs: 300 })),
    );
    expect([trajectories.length, failures.length]).toStrictEqual([0, 1]);
    expect(failures[0]!.message).toContain('300 ms');
    await vi.waitFor(() => expect(cancelled).toBe(true));
  });

  it('a result of images only, and an empty one, are messages too', async () => {
    const tools = await mcpTools(await connected());
    const context = { signal: new AbortController().signal, seed: 0, index: 0, task: undefined };
    expect(await tools['draw']!.execute({} as never, context)).toBe('[image]\n[audio]\n[resource_link file:///b.bin]');
    expect(await tools['quiet']!.execute({} as never, context)).toBe('');
  });

  it('reads all pages, and says which tool is not there', async () => {
    const tool = (name: string) => ({ name, inputSchema: { type: 'object' } });
    const paged: McpClient = {
      listTools: ({ cursor } = {}) =>
        Promise.resolve(cursor === undefined ? { tools: [tool('a')], nextCursor: '2' } : { tools: [tool('b')] }),
      callTool: () => Promise.resolve({ structuredContent: { found: 1 }, content: [] }),
    };
    const tools = await mcpTools(paged, { only: ['b'] });
    expect(Object.keys(tools)).toStrictEqual(['b']);
    const context = { signal: new AbortController().signal, seed: 0, index: 0, task: undefined };
    expect(await tools['b']!.execute({} as never, context)).toBe('{"found":1}');
    await expect(mcpTools(paged, { only: ['c'] })).rejects.toThrow('the MCP server has no tool c; there are a, b');
  });
});
