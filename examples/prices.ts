// What will it cost? Reads the service's price list, and prices what a small run used.
import { lastValueFrom, range } from 'rxjs';
import { ModelInput } from 'tinker-rx';
import { priceOf, readPrices, trackCost } from 'tinker-rx/evals';
import { sampleFrom } from 'tinker-rx/operators';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
// Kept for a day. Where the list cannot be read, the newest one at hand is used, and `problem` says why.
const { asOf, models } = await readPrices({});
const [priced = 'Qwen/Qwen3-8B'] = [baseModel].filter((model) => models[model] !== undefined);
console.log(`prices as of ${asOf}`);

let used = { prompt: 0, cached: 0, sampled: 0, trained: 0 };
trackCost(service.events$, { model: baseModel }).subscribe((cost) => (used = cost));
const sampler = await service.createSamplingClient({ baseModel });
const prompt = ModelInput.fromInts([...Buffer.from('A long prompt that all samples share. ')]);
const request = () => ({ prompt, samplingParams: { maxTokens: 8 } });
const samples = range(0, 4).pipe(sampleFrom(sampler, { request }));
await lastValueFrom(samples);

console.log(`${used.prompt} prompt tokens, ${used.cached} of them cached, ${used.sampled} sampled`);
console.log(`a million such runs on ${priced}: $${(1e6 * priceOf(used, models[priced]!)).toFixed(2)}`);
await close();
