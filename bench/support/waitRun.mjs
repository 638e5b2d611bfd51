// CPU of a process whose samples only wait: node waitRun.mjs <{ origin, samples, windowSeconds }>. Prints { share } of a core as JSON.
import { setTimeout as sleep } from 'node:timers/promises';
import { SAMPLED_TOKENS, thisClient } from './samplers.mjs';
import { printShareOfCore } from './shareOfCore.mjs';

const { origin, samples, windowSeconds } = JSON.parse(process.argv[2]);
const peer = await thisClient(origin, 512);
for (let i = 0; i < samples; i++)
  peer.sampler.sample({ prompt: peer.input(), samplingParams: { maxTokens: SAMPLED_TOKENS } }).catch(() => undefined);
// All are sent, and have been polled once, before the window begins.
await sleep(8000);
await printShareOfCore(windowSeconds);
