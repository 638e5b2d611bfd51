/** What a newcomer's usual mistakes are answered with. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { lastValueFrom, of, Subject } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { type Datum, ModelInput, ServiceClient, TinkerFuture } from 'tinker-rx';
import { ByteTokenizer, getRenderer } from 'tinker-rx/chat';
import { batch, checkpointEvery, toDatums, toPairs, train } from 'tinker-rx/operators';
import { singleTurn } from 'tinker-rx/rl';
import { toServerSentEvents } from 'tinker-rx/sinks';
import { fakeTransport, fakeTrainer, refusal, type Script, VirtualClock } from 'tinker-rx/testing';
import { jsonSchemaOf } from '../../../src/rl/environments/toolUse.js';
import { nodeProblem } from '../../../src/support/nodeVersion.js';

const renderer = getRenderer('tinker_rx_bytes', new ByteTokenizer());
const chat = [
  { role: 'user', content: 'Hello?' },
  { role: 'assistant', content: 'Hello!' },
];

describe('a forgotten await', () => {
  const future = new TinkerFuture(() => of(renderer)) as never;

  it.each([
    ['toDatums', () => toDatums(future)],
    ['toPairs', () => toPairs(future)],
    ['singleTurn', () => singleTurn({ renderer: future, prompt: () => '', reward: () => 0 })],
  ])('on getRenderer() is named by %s, not blamed on the data', (name, make) => {
    expect(make).toThrow(`${name} needs a renderer, got a future: write await before getRenderer()`);
  });

  it('is not guessed where something else is no renderer', () => {
    expect(() => toDatums('qwen3' as never)).toThrow('toDatums needs a renderer, got a string');
  });
});

describe('train', () => {
  const trained = (source: unknown) =>
    lastValueFrom(of(source).pipe(train(fakeTrainer().trainer, { loss: 'cross_entropy' }) as never));

  it('says that batch is missing', async () => {
    const [datum] = await lastValueFrom(of(chat).pipe(toDatums(renderer), batch({ size: 1 })));
    const message = 'batch 0 is a single datum: put batch({ size }) between toDatums and train';
    await expect(trained(datum)).rejects.toThrow(message);
    const marked = of(datum as unknown as readonly Datum[]).pipe(checkpointEvery({ steps: 1 }));
    await expect(lastValueFrom(marked)).rejects.toThrow(message);
  });

  it('says that toDatums is missing', async () => {
    const message = 'batch 0 holds no datums: put toDatums(renderer) before batch';
    await expect(trained([{ messages: chat }])).rejects.toThrow(message);
    await expect(trained({ messages: chat })).rejects.toThrow(
      'batch 0 is neither a list of datums nor a marked batch: put toDatums(renderer) and batch({ size }) before train',
    );
  });
});

it('a string as prompt is answered with what to write', () => {
  const clock = new VirtualClock();
  const service = new ServiceClient(fakeTransport({ scheduler: clock }).clientOptions);
  const sampler = clock.resolve(service.createSamplingClient({ baseModel: 'any' }));
  expect(() => clock.resolve(sampler.sample({ prompt: 'Hello?' as never }))).toThrow(
    "prompt must be a ModelInput, got a string: write sampler.reply('…') for a chat model, or ModelInput.fromInts(tokenizer.encode('…'))",
  );
  expect(() => clock.resolve(sampler.sample({ prompt: chat as never }))).toThrow(
    'prompt must be a ModelInput, got a list: write sampler.reply(messages), or renderer.buildGenerationPrompt(messages)',
  );
  expect(ModelInput.fromInts([1]).length).toBe(1);
});

describe('the version of Node', () => {
  it.each([
    ['18.20.4', 'tinker-rx needs Node 20.18 or newer, and this is Node 18.20.4'],
    ['20.17.0', 'tinker-rx needs Node 20.18 or newer, and this is Node 20.17.0'],
    ['20.18.0', undefined],
    ['22.0.0', undefined],
    [undefined, undefined],
  ])('%s', (node, problem) => {
    expect(nodeProblem({ node })).toBe(problem);
  });

  it('is not asked of Bun and Deno, which report one of their own choice', () => {
    expect(nodeProblem({ node: '18.0.0', bun: '1.4.0' })).toBeUndefined();
    expect(nodeProblem({ node: '18.0.0', deno: '2.9.0' })).toBeUndefined();
  });
});

describe('a script of fakeTransport', () => {
  const scripted = (script: object) => () => fakeTransport({ scheduler: new VirtualClock(), script: script as Script });

  it('with a path that no client asks for is refused, with the one meant', () => {
    expect(scripted({ optimStep: refusal(503) })).toThrow(
      'script: no client asks for optimStep; did you mean optim_step?',
    );
    expect(scripted({ 'client/confg': refusal(503) })).toThrow('no client asks for client/confg; there are asample, ');
    expect(scripted({ 'retrieve_futuer OptimStep': refusal(503) })).toThrow('no client asks for retrieve_futuer');
  });

  it('takes every path of the service, and has types for them', () => {
    const script: Script = { optim_step: refusal(503), 'sessions/1/finish': refusal(503), checkpoints: refusal(404) };
    expect(scripted({ ...script, 'retrieve_future OptimStep': refusal(503) })).not.toThrow();
    // @ts-expect-error a name of the client in place of a path of the service
    expect(() => fakeTransport({ scheduler: new VirtualClock(), script: { optimStep: refusal(503) } })).toThrow();
  });
});

it("a tool's schema says nothing of JSON Schema itself to the model", () => {
  const inputSchema = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value: unknown) => ({ value }),
      jsonSchema: { input: () => ({ $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' }) },
    },
  };
  expect(jsonSchemaOf('add', inputSchema as never)).toStrictEqual({ type: 'object' });
});

it('a page of server-sent events hears that the stream is complete', async () => {
  const source = new Subject<string>();
  const sink = toServerSentEvents(source);
  const server = createServer(sink.handle).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const heard = fetch(url).then((response) => response.text());
  await vi.waitFor(() => expect(sink.clients).toBe(1), 240_000);
  source.next('a');
  source.complete();
  expect(await heard).toMatch(/event: message\ndata: "a"\n\nid: .*\nevent: complete\ndata: \{\}\n\n$/);
  server.close();
});
