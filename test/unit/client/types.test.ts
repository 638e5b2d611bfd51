import { describe, expect, it } from 'vitest';
import type {
  AdamParams,
  LossFnConfig,
  LossFnType,
  SamplingClient,
  TinkerError,
  TinkerErrorCode,
  TrainingClient,
} from 'tinker-rx';
import { getRenderer, RENDERER_NAMES, type BuiltInRendererName, type RendererName } from 'tinker-rx/chat';
import * as everything from 'tinker-rx';
import * as chat from 'tinker-rx/chat';
import * as rl from 'tinker-rx/rl';
import * as sources from 'tinker-rx/sources';
import { AdamParams as AdamParamsCodec } from '../../../src/wire/optimizer.js';
import { LOSS_CONFIG_KEYS } from '../../../src/wire/training.js';
import { datum, stage } from '../../marbles/client/stage.js';

/** Compiled with the rest of the tests; a line below `@ts-expect-error` that compiled after all would be an error. */
export function compiled(model: TrainingClient, sampler: SamplingClient, error: TinkerError, loss: LossFnType): void {
  const data = [datum()];
  void model.forwardBackward(data, 'ppo', { lossFnConfig: { clip_low_threshold: 0.9, clip_high_threshold: 1.3 } });
  void model.forward(data, 'dro', { lossFnConfig: { beta: 0.1 }, timeoutMs: 1 });
  // @ts-expect-error There is no such key.
  void model.forwardBackward(data, 'ppo', { lossFnConfig: { clip_low: 0.9 } });
  // @ts-expect-error The key is another loss's.
  void model.forwardBackward(data, 'dro', { lossFnConfig: { clip_low_threshold: 0.9 } });
  // @ts-expect-error Cross entropy takes nothing.
  void model.forward(data, 'cross_entropy', { lossFnConfig: { beta: 1 } });
  const open: LossFnConfig = { clip_low_threshold: 0.8 };
  void model.forwardBackward(data, loss, { lossFnConfig: open });
  void sampler.getRenderer('qwen3');
  void sampler.getRenderer('my-org/my-format');
  const name: BuiltInRendererName = 'qwen3_5';
  // @ts-expect-error It is not built in.
  const wrong: BuiltInRendererName = 'qwen2';
  const any: RendererName = 'qwen2';
  if (error.code === 'timeout') return;
  // @ts-expect-error There is no such code.
  if (error.code === 'timed_out') return;
  const adam: AdamParams = { beta2: 0.999 };
  // @ts-expect-error The field has another name.
  const mistaken: AdamParams = { lr: 1 };
  void [name, wrong, any, adam, mistaken];
}

describe('what an editor can complete', () => {
  it('are the codes of all errors, each of which has a class', () => {
    const CODES: Record<TinkerErrorCode, true> = {
      authentication: true,
      bad_request: true,
      bad_row: true,
      billing: true,
      cancelled: true,
      closed: true,
      conflict: true,
      connection: true,
      credential: true,
      custom_loss: true,
      event_stream: true,
      gone: true,
      invalid_input: true,
      invalid_response: true,
      missing_request: true,
      not_found: true,
      permission_denied: true,
      rate_limit: true,
      renderer: true,
      request_failed: true,
      rollouts_failed: true,
      server: true,
      source: true,
      status: true,
      stuck: true,
      timeout: true,
      tokenizer: true,
      unexpected: true,
      unprocessable: true,
      unsupported_version: true,
    };
    const classes = Object.values({ ...everything, ...chat, ...rl, ...sources } as Record<string, unknown>).filter(
      (value): value is new (message: string, options: object) => TinkerError =>
        typeof value === 'function' && value.prototype instanceof everything.TinkerError,
    );
    const made = classes.map((made) => new made('x', { status: 500, headers: {}, body: '', category: 'user' }).code);
    expect([...new Set(made)].sort()).toEqual(Object.keys(CODES).sort());
  });

  it('are the names of all renderers', () => {
    const some: readonly BuiltInRendererName[] = ['role_colon', 'llama3', 'qwen3_8_low_reasoning', 'tinker_rx_bytes'];
    expect(RENDERER_NAMES).toEqual(expect.arrayContaining([...some]));
    expect(() => getRenderer('qwen2', new chat.ByteTokenizer())).toThrow(
      /unknown renderer qwen2; the built-in ones are/,
    );
  });

  it('are defaults that the documentation of AdamParams tells as they are', () => {
    const prepared = AdamParamsCodec.prepare({});
    expect(prepared).toMatchObject({
      right: { learning_rate: 1e-4, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0, grad_clip_norm: 0 },
    });
  });
});

describe('the config of a loss', () => {
  it.each([
    [
      'ppo',
      { clip_low: 0.8 },
      'lossFnConfig.clip_low is unknown: ppo takes clip_low_threshold, clip_high_threshold, value_clip',
    ],
    ['dro', { clip_low_threshold: 0.8 }, 'lossFnConfig.clip_low_threshold is unknown: dro takes beta'],
    ['cross_entropy', { beta: 1 }, 'lossFnConfig.beta is unknown: cross_entropy takes none'],
    ['ppo', { clip_low_threshold: NaN }, 'lossFnConfig must hold finite numbers or strings'],
  ] as const)('with a key that %s does not take is refused before anything is sent: %j', (loss, config, message) => {
    const on = stage();
    const pass = on.trainer().forwardBackward([datum()], loss, { lossFnConfig: config as never });
    expect(on.clock.reject(pass)).toMatchObject({ code: 'invalid_input', message });
    expect(on.fake.to('forward_backward')).toEqual([]);
  });

  it('goes out as it is where the loss takes it, or where nobody knows what it takes', () => {
    const on = stage();
    const model = on.trainer();
    on.clock.resolve(model.forwardBackward([datum()], 'ppo', { lossFnConfig: { clip_low_threshold: 0.9 } }));
    on.clock.resolve(model.forwardBackward([datum()], 'stable_reinforce', { lossFnConfig: { whatever: 'x' } }));
    expect(on.fake.to('forward_backward')).toHaveLength(2);
    expect(Object.keys(LOSS_CONFIG_KEYS)).not.toContain('stable_reinforce');
  });
});
