/** What Python users and other servers' habits ask of the embedded service. */
import { join } from 'node:path';
import { Decrypter, generateIdentity, identityToRecipient } from 'age-encryption';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ModelInput, RestClient, ServiceClient, type TrainingClient } from 'tinker-rx';
import { ByteTokenizer, loadTokenizer } from 'tinker-rx/chat';
import { LocalTinker } from 'tinker-rx/local';
import { connect, type Json, type LocalCaller } from './localCaller.js';
import { sampleBody } from './localFixture.js';

const MODEL = 'tinker-rx/tiny';
const PROMPT = [40, 41, 42];
let plain: LocalTinker;
let strict: LocalTinker;

beforeAll(async () => {
  plain = await LocalTinker.start();
  strict = await LocalTinker.start({ sampledLogprobs: 'scaled', refuseOverflow: true, refuseUnknownInputs: true });
});
afterAll(() => Promise.all([plain.close(), strict.close()]));

async function sampled(caller: LocalCaller, params: Json, fields: Json = {}) {
  const session = await caller.createSession();
  const { sampling_session_id: id } = await caller.post('create_sampling_session', {
    ...{ session_id: session, sampling_session_seq_id: 0, base_model: MODEL },
  });
  return caller.sample(sampleBody({ sampling_session_id: id, seq_id: 0, sampling_params: params, ...fields }));
}

const trainerOf = (service: ServiceClient): PromiseLike<TrainingClient> =>
  service.createLoraTrainingClient({ baseModel: MODEL, rank: 2 });
const clientOf = ({ url, apiKey }: LocalTinker) => new ServiceClient({ baseUrl: url, apiKey });

describe('stop', () => {
  it('may be a bare text, as Python sends it', async () => {
    const caller = connect(plain);
    const params = { max_tokens: 40, seed: 1 };
    const [bare, list] = [
      await sampled(caller, { ...params, stop: 'e' }),
      await sampled(caller, { ...params, stop: ['e'] }),
    ];
    expect(bare.sequences[0]!.stopReason).toBe('stop');
    expect(bare.sequences[0]!.tokens).toStrictEqual(list.sequences[0]!.tokens);
    await expect(sampled(caller, { ...params, stop: [1, 'e'] })).rejects.toThrow('a list of strings or of token ids');
    await expect(sampled(caller, { ...params, stop: 7 })).rejects.toThrow('a list of strings or of token ids');
  });
});

describe('tokenizer_id', () => {
  it('names a folder with the same ids, which this client does not read', async () => {
    await using service = clientOf(plain);
    const trainer = await trainerOf(service);
    const { modelData } = await trainer.getInfo();
    expect(modelData.tokenizerId).toBe(join(plain.dataFolder, 'tokenizer'));
    expect(await trainer.getTokenizer()).toBeInstanceOf(ByteTokenizer);
    const [theirs, ours] = [await loadTokenizer(modelData.tokenizerId!), new ByteTokenizer()];
    const everyByte = String.fromCodePoint(...Array.from({ length: 0x250 }, (_, code) => code));
    for (const text of ['', 'Hello, sky!\n', '  tabs\tand  spaces ', 'Grüße, 世界 🌊', everyByte]) {
      expect(Array.from(theirs.encode(text)), text).toStrictEqual(Array.from(ours.encode(text)));
      expect(theirs.decode(ours.encode(text))).toBe(text);
    }
    expect(theirs.specialTokens).toStrictEqual(ours.specialTokens);
    expect([theirs.eosTokenId, theirs.bosTokenId]).toStrictEqual([ours.eosTokenId, ours.bosTokenId]);
    await service.close();
  });
});

describe('on request', () => {
  it('a sample that cannot fit the context is refused, not cut', async () => {
    const params = { max_tokens: 2046 };
    expect((await sampled(connect(plain), { ...params, stop: [32] })).sequences).toHaveLength(1);
    await expect(sampled(connect(strict), params)).rejects.toThrow(
      'a prompt of 3 tokens and max_tokens 2046 do not fit the context of 2048',
    );
    expect((await sampled(connect(strict), { max_tokens: 2045, stop: [32] })).sequences).toHaveLength(1);
  });

  it('a loss input that the loss does not read is refused, not ignored', async () => {
    const datum = {
      modelInput: ModelInput.fromInts(PROMPT),
      lossFnInputs: { target_tokens: PROMPT, weights: [1, 1, 1], advantages: [1, 1, 1] },
    };
    for (const [local, outcome] of [
      [plain, 'runs'],
      [strict, 'datum 0: cross_entropy does not read advantages'],
    ] as const) {
      const service = clientOf(local);
      const trainer = await trainerOf(service);
      const told = await trainer.forward([datum], 'cross_entropy').then(
        () => 'runs',
        (error: unknown) => (error as Error).message,
      );
      expect(told).toContain(outcome);
      await service.close();
    }
  });

  it('logprobs of what was sampled are those at the temperature', async () => {
    const params = { max_tokens: 4, temperature: 2, seed: 3, stop: [] };
    const top = { topk_sample_logprobs: 264 };
    const raw = await sampled(connect(plain), params, top);
    const scaled = await sampled(connect(strict), params, top);
    expect(scaled.sequences[0]!.tokens).toStrictEqual(raw.sequences[0]!.tokens);
    const table = raw.sequences[0]!.topkLogprobs!;
    scaled.sequences[0]!.logprobs!.forEach((logprob, row) => {
      const all = Array.from(table.logprobs.subarray(row * table.k, (row + 1) * table.k), (value) => value / 2);
      const total = Math.log(all.reduce((sum, value) => sum + Math.exp(value), 0));
      expect(logprob).toBeCloseTo(raw.sequences[0]!.logprobs![row]! / 2 - total, 4);
    });
    const at = async (local: LocalTinker, temperature: number) =>
      (await sampled(connect(local), { ...params, temperature })).sequences[0]!.logprobs;
    for (const temperature of [0, 1]) expect(await at(strict, temperature)).toStrictEqual(await at(plain, temperature));
    await expect(LocalTinker.start({ sampledLogprobs: 'cooked' as never })).rejects.toThrow('sampledLogprobs must be');
  });
});

describe('an export for age recipients', () => {
  it('has every file encrypted to each of them', async () => {
    const identities = [await generateIdentity(), await generateIdentity()];
    const recipients = await Promise.all(identities.map(identityToRecipient));
    await using service = clientOf(plain);
    const trainer = await trainerOf(service);
    const rest = new RestClient({ baseUrl: plain.url, apiKey: plain.apiKey });
    const files = async (path: string): Promise<Map<string, Uint8Array>> => {
      const { urls } = await rest.getExternalWeightsUrls(path);
      const found = Object.entries(urls).map(
        async ([name, url]) => [name, new Uint8Array(await (await fetch(url)).arrayBuffer())] as const,
      );
      return new Map(await Promise.all(found));
    };
    const open = await files((await trainer.saveWeightsExternal('open')).path);
    const saved = await trainer.saveWeightsExternal('sealed', { ageEncryptionRecipients: recipients });
    const sealed = await files(saved.path);
    expect([...sealed.keys()].sort()).toStrictEqual([...open.keys()].map((name) => `${name}.age`).sort());
    for (const identity of identities) {
      for (const [name, content] of sealed) {
        const decrypter = new Decrypter();
        decrypter.addIdentity(identity);
        expect(Buffer.from(await decrypter.decrypt(content))).toStrictEqual(Buffer.from(open.get(name.slice(0, -4))!));
      }
    }
    const bad = (recipient: string) => trainer.saveWeightsExternal('bad', { ageEncryptionRecipients: [recipient] });
    await expect(bad('age1no')).rejects.toThrow('age_encryption_recipients: not an age recipient');
    await expect(bad('ssh-ed25519 AAAA')).rejects.toThrow('SSH keys are not supported here');
    await rest.close();
    await service.close();
  });
});
