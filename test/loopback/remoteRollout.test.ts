/** An agent behind HTTP, as docs/remote-rollouts.md describes it, and coding agents that are launched. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { firstValueFrom, from, lastValueFrom, toArray } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { rollouts, type Group } from '../../src/rl/index.js';
import { remoteRollout, type RemoteRolloutOptions } from '../../src/serve/index.js';
import { fromRecorded } from '../../src/sources/index.js';
import { run } from '../unit/cli/terminal.js';
import { closeAfterEach, serving, model } from './gateway/serving.js';
import { renderer, scripted } from './support/scriptedSampler.js';

closeAfterEach();

interface Asked {
  readonly task: { readonly question: string };
  readonly base_url: string;
  readonly anthropic_base_url: string;
  readonly api_key: string;
  readonly model: string;
  readonly seed: number;
}

let server: Server | undefined;
const headersSeen: IncomingHttpHeaders[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  headersSeen.length = 0;
  await new Promise((closed) => (server === undefined ? closed(undefined) : server.close(closed)));
  server = undefined;
});

/** An agent in any language: it reads JSON, calls its model, and answers JSON. */
async function agentAt(
  answer: (asked: Asked, text: string) => readonly [status: number, body: string],
): Promise<string> {
  server = createServer((request, response) => {
    headersSeen.push(request.headers);
    void (async () => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const asked = JSON.parse(Buffer.concat(parts).toString()) as Asked;
      const reply = await fetch(`${asked.base_url}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${asked.api_key}` },
        body: JSON.stringify({ model: asked.model, messages: [{ role: 'user', content: asked.task.question }] }),
      });
      const { choices } = (await reply.json()) as { choices: [{ message: { content: string } }] };
      const [status, body] = answer(asked, choices[0].message.content);
      response.writeHead(status).end(body);
    })();
  });
  await new Promise<void>((listening) => server!.listen(0, '127.0.0.1', listening));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/rollout`;
}

const groupOf = (url: string, options: Partial<RemoteRolloutOptions> = {}): Promise<Group<Asked['task']>> => {
  const agent = remoteRollout<Asked['task']>(url, { renderer, ...options });
  const policy = scripted(['Five.']).sampler as never;
  return firstValueFrom(from([{ question: '2+3?' }]).pipe(rollouts(agent, { policy, group: 1 })));
};

describe('remoteRollout', () => {
  it('tells the agent its task and its model, and trains on what was sampled there', async () => {
    const seen: Asked[] = [];
    const url = await agentAt((asked, text) => {
      seen.push(asked);
      return [
        200,
        JSON.stringify({ reward: text === 'Five.' ? 1 : 0, metrics: { length: text.length }, tags: ['sums'] }),
      ];
    });
    const { trajectories, tags } = await groupOf(url, { headers: { 'x-agent-key': 'mine' } });
    expect(trajectories).toMatchObject([{ reward: 1, metrics: { length: 5, 'agent/turns': 1 } }]);
    expect(trajectories[0]!.turns).toHaveLength(1);
    expect(tags).toContain('sums');
    expect(seen).toMatchObject([{ task: { question: '2+3?' }, model: 'policy', seed: expect.any(Number) as number }]);
    expect(seen[0]!.base_url).toBe(`${seen[0]!.anthropic_base_url}/v1`);
    expect(headersSeen[0]).toMatchObject({ 'x-agent-key': 'mine' });
  });

  it('gives another origin to agents that reach this machine by it', async () => {
    const url = await agentAt(({ base_url }) => [
      200,
      JSON.stringify({ reward: base_url.startsWith('http://127.0.0.1:') }),
    ]);
    const port = await freePort();
    const { trajectories } = await groupOf(url, { publicUrl: `http://127.0.0.1:${port}`, gateway: { port } });
    expect(trajectories).toMatchObject([{ reward: 1 }]);
  });

  it.each([
    [500, 'no idea', 'the agent answered with status 500: no idea'],
    [200, 'fine', "the agent's answer is not JSON"],
    [200, '{"score":1}', 'the agent reported no reward: it must answer { "reward": <number> }'],
    [200, '[1]', 'the agent reported no reward'],
    [200, '{"reward":"1"}', 'the agent reported no reward'],
    [200, '{"reward":NaN}', "the agent's answer is not JSON: it has NaN, which JSON does not know"],
    [200, '{"reward":1e999}', 'the reward of an agent is Infinity'],
    [200, '{"reward":1,"metrics":{"passed":"7"}}', 'metrics must be numbers by name: passed is not'],
    [200, '{"reward":1,"metrics":[7]}', 'metrics must be numbers by name'],
    [200, '{"reward":1,"tags":"python"}', 'tags must be a list of texts'],
  ])('fails the rollout for %s %s', async (status, body, message) => {
    const { failures } = await groupOf(await agentAt(() => [status, body]));
    expect(failures).toMatchObject([{ message: expect.stringContaining(message) as string }]);
    expect(failures[0]!.place, 'no place in code of the user, nor inside Node').toBeUndefined();
  });

  it('fails the rollout for an agent that dies, and for one that is not there', async () => {
    const url = await agentAt(() => {
      server!.closeAllConnections();
      return [200, '{"reward":1}'];
    });
    expect((await groupOf(url)).failures).toMatchObject([
      { message: expect.stringMatching(/^the agent at 127\.0\.0\.1:\d+ gave no answer: /) as string },
    ]);
    expect((await groupOf('http://127.0.0.1:1/rollout?key=hunter22')).failures).toMatchObject([
      { message: expect.stringMatching(/^the agent at 127\.0\.0\.1:1 gave no answer: .*ECONNREFUSED/) as string },
    ]);
  });

  it('closes the request of an agent that takes too long, whose address then answers nobody', async () => {
    let late: Promise<number> | undefined;
    server = createServer((request, response) => {
      void (async () => {
        const parts: Buffer[] = [];
        for await (const part of request) parts.push(part as Buffer);
        const { base_url, api_key } = JSON.parse(Buffer.concat(parts).toString()) as Asked;
        const call = () =>
          fetch(`${base_url}/chat/completions`, {
            method: 'POST',
            headers: { authorization: `Bearer ${api_key}` },
            body: JSON.stringify({ messages: [{ role: 'user', content: 'x' }] }),
          }).then(
            ({ status }) => status,
            () => 0,
          );
        await call();
        response.on('close', () => void (late = call()));
      })();
    });
    await new Promise<void>((listening) => server!.listen(0, '127.0.0.1', listening));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/rollout`;
    const agent = remoteRollout<Asked['task']>(url, { renderer });
    const policy = scripted(['Five.']).sampler as never;
    const { failures } = await firstValueFrom(
      from([{ question: '2+3?' }]).pipe(rollouts(agent, { policy, group: 1, timeoutMs: 500 })),
    );
    expect(failures).toMatchObject([{ message: expect.stringContaining('500 ms') as string }]);
    await vi.waitFor(() => expect(late).toBeDefined());
    expect([0, 401, 404]).toContain(await late);
  });

  it('never tells the keys that an agent repeats', async () => {
    const url = await agentAt((asked) => [500, `Traceback: ${asked.api_key} ${headersSeen[0]!.authorization}`]);
    const { failures } = await groupOf(url, { headers: { authorization: 'Bearer key-of-the-agent' } });
    const message = failures[0]!.message;
    expect(message).toContain('[redacted] [redacted]');
    expect(message).not.toContain('key-of-the-agent');
  });
});

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((listening) => probe.listen(0, '127.0.0.1', listening));
  const { port } = probe.address() as AddressInfo;
  await new Promise((closed) => probe.close(closed));
  return port;
}

/** Stands for the agent: it writes down its environment and arguments, and asks its model once. Hand-written. */
const FAKE = (path: string, body: string) => `#!${process.execPath}
const { writeFileSync } = require('node:fs');
const { env, argv } = process;
const base = env.ANTHROPIC_BASE_URL ?? env.OPENAI_BASE_URL;
const key = env.ANTHROPIC_AUTH_TOKEN ?? env.OPENAI_API_KEY;
fetch(base + '${path}', { method: 'POST', headers: { authorization: 'Bearer ' + key }, body: JSON.stringify(${body}) })
  .then((reply) => reply.text())
  .then((text) => writeFileSync(env.SEEN, JSON.stringify({ args: argv.slice(2), text, env, key })))
  .then(() => process.exit(3));
`;

describe('tinker-rx serve --launch', () => {
  it.each([
    [
      'claude',
      '/v1/messages',
      '{ model: env.ANTHROPIC_MODEL, max_tokens: 9, messages: [{ role: "user", content: "Hi" }] }',
    ],
    ['codex', '/responses', '{ model: argv[argv.indexOf("-m") + 1], input: "Hi" }'],
  ])('runs %s on the model, records it, and ends with its exit code', async (agent, path, body) => {
    const folder = mkdtempSync(join(tmpdir(), 'tinker-rx-launch-'));
    try {
      const upstream = await serving(['Hello.']);
      writeFileSync(join(folder, agent), FAKE(path, body));
      chmodSync(join(folder, agent), 0o755);
      vi.stubEnv('PATH', `${folder}${delimiter}${process.env['PATH']}`);
      vi.stubEnv('SEEN', join(folder, 'seen.json'));
      vi.stubEnv('UPSTREAM_API_KEY', upstream.apiKey);
      const file = join(folder, 'calls.jsonl');
      const flags = ['--upstream', upstream.url, '-m', model, '--record', file, '--launch', agent];
      const { code, stderr } = await run(['serve', ...flags, '--', '-p', 'do it']);
      expect(code, stderr).toBe(3);
      const seen = JSON.parse(readFileSync(join(folder, 'seen.json'), 'utf8')) as {
        readonly args: readonly string[];
        readonly text: string;
        readonly key: string;
      };
      expect(seen.args.slice(-2)).toStrictEqual(['-p', 'do it']);
      expect(seen.text).toContain('Hello.');
      const calls = await lastValueFrom(fromRecorded(file, { as: 'tasks' }).pipe(toArray()));
      expect(calls).toMatchObject([{ expected: 'Hello.' }]);
      expect(readFileSync(file, 'utf8')).not.toContain(seen.key);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('says what is wrong', async () => {
    const flags = ['serve', '--upstream', 'http://127.0.0.1:1', '-m', 'a'];
    expect((await run([...flags, 'x'])).stderr).toContain('Give the model once');
    expect((await run(['serve', 'a', 'x'])).stderr).toContain('serve takes no argument x without --launch');
    const folder = mkdtempSync(join(tmpdir(), 'tinker-rx-launch-'));
    vi.stubEnv('PATH', folder);
    const missing = await run([...flags, '--record', join(folder, 'c.jsonl'), '--launch', 'claude']);
    rmSync(folder, { recursive: true });
    expect([missing.code, missing.stderr]).toStrictEqual([1, expect.stringContaining('claude cannot be started')]);
  });
});
