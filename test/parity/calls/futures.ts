import { SamplingClient } from 'tinker-rx';
import { vi } from 'vitest';
import { API_KEY, type Play } from '../support/stage.js';
import { ONES, PARAMS, PROMPT, datum } from './data.js';

const SAMPLE = { prompt: PROMPT, numSamples: 1, samplingParams: PARAMS };

/** Plays with a clock that runs ahead whenever the client waits, so that pauses of seconds take none. */
const hurried =
  (play: Play): Play =>
  async (stage) => {
    vi.useFakeTimers();
    try {
      let done = false;
      const playing = play(stage).finally(() => (done = true));
      // Not past the heartbeat's ten seconds.
      for (let step = 0; step < 90 && !done; step++) await vi.advanceTimersByTimeAsync(100);
      await playing;
    } finally {
      vi.useRealTimers();
    }
  };

export const futures: Readonly<Record<string, Play>> = {
  'polls-training': hurried(async (stage) => {
    const trainer = await stage.trainer();
    await stage.result('optim_step', trainer.optimStep());
    await stage.result('forward_backward', trainer.forwardBackward([datum(ONES)], 'cross_entropy'));
  }),
  'polls-sampling': hurried(async (stage) => {
    const sampler = await stage.sampler();
    await stage.result('sample', sampler.sample(SAMPLE));
  }),
  'polls-failed': async (stage) => {
    const trainer = await stage.trainer();
    for (let step = 1; step <= 4; step++) await stage.result(`optim_step ${step}`, trainer.optimStep());
  },
  'sample-429': hurried(async (stage) => {
    const sampler = await stage.sampler();
    await stage.result('sample', sampler.sample(SAMPLE));
    await stage.result('sample', sampler.sample(SAMPLE));
  }),
  'sample-410': hurried(async (stage) => {
    const sampler = await stage.sampler();
    await stage.result('sample', sampler.sample({ ...SAMPLE, numSamples: 2 }));
  }),
  'send-503': hurried(async (stage) => {
    const trainer = await stage.trainer();
    await stage.result('forward_backward', trainer.forwardBackward([datum(ONES)], 'cross_entropy'));
    await stage.result('optim_step', trainer.optimStep());
  }),
  'retrieve-futures': async (stage) => {
    const sampler = await stage.sampler();
    for (let count = 0; count < 3; count++) {
      await stage.result('sample', sampler.sample(SAMPLE));
      await stage.quiet();
    }
  },
  'retrieve-futures-clone': async (stage) => {
    const handle = (await stage.sampler()).getSamplerHandle();
    const clone = SamplingClient.fromSamplerHandle(handle, { apiKey: API_KEY, transport: stage.replay.transport });
    await stage.result('sample', clone.sample(SAMPLE));
    await stage.quiet();
  },
  cancel: async (stage) => {
    const sampler = await stage.sampler();
    const future = sampler.sample(SAMPLE);
    await stage.sent('retrieve_future');
    future.cancel();
    await stage.sent('cancel_future');
  },
  'cancel-off': async (stage) => {
    const sampler = await stage.sampler();
    const future = sampler.sample(SAMPLE);
    await stage.sent('retrieve_future');
    future.cancel();
    await stage.quiet();
  },
};
