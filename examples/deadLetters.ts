// Rows that fail are kept with their error; a second run takes exactly those, and empties the file.
import { existsSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { count, lastValueFrom, type Observable } from 'rxjs';
import { ModelInput } from 'tinker-rx';
import { sampleFrom } from 'tinker-rx/operators';
import { toDeadLetters } from 'tinker-rx/sinks';
import { fromArray, redeliver } from 'tinker-rx/sources';
import { connect } from './connect.js';

type Row = { readonly id: number; readonly text: string };
// Every tenth row is longer than the model's context.
const rows = Array.from({ length: 50 }, (_, id): Row => ({ id, text: 'word '.repeat(id % 10 === 0 ? 100_000 : 10) }));

const { service, baseModel, close } = await connect();
const sampler = await service.createSamplingClient({ baseModel });
const tokenizer = await sampler.getTokenizer();
const dead = `${tmpdir()}/dead-${process.pid}.jsonl`;

const answer = (mostTokens: number) => (each: Observable<Row>) =>
  each.pipe(
    sampleFrom(sampler, {
      request: ({ text }) => ({ prompt: ModelInput.fromInts(tokenizer.encode(text).slice(-mostTokens)) }),
      ...{ numSamples: 1, samplingParams: { maxTokens: 4 } },
      onFailure: { deadLetters: toDeadLetters(dead) },
    }),
    count(),
  );
console.log(
  `first run: ${await lastValueFrom(fromArray(rows).pipe(answer(Infinity)))} of ${rows.length} rows answered`,
);
const kept = readFileSync(dead, 'utf8')
  .match(/(?<="item":\{"id":)\d+/g)!
  .map(Number);
console.log(`kept: rows ${kept.sort((a, b) => a - b).join(', ')}`);
console.log(`second run: ${await lastValueFrom(redeliver(dead, answer(100)))} rows answered, with shorter prompts`);
console.log(`rows that are left: ${existsSync(dead) ? 'some' : 'none'}`);
await close();
