// Trains and evaluates from one reading of a file of 200,000 rows. The slower of the two sets the pace, so memory stays flat.
import { appendFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { filter, tap } from 'rxjs';
import { batch, broadcast, concatMapAhead, toDatums, train } from 'tinker-rx/operators';
import { fromConversations } from 'tinker-rx/sources';
import { connect } from './connect.js';

const file = `${tmpdir()}/rows-${process.pid}.jsonl`;
const row = (n: number) => ({ prompt: `${n % 10}+1`, completion: `${(n % 10) + 1}`, note: `row ${n} `.repeat(25) });
for (let n = 0; n < 200_000; n++) appendFileSync(file, `${JSON.stringify(row(n))}\n`);

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 8, seed: 1 });
const renderer = await trainer.getRenderer();
let [rows, mostMb] = [0, 0];
const both = fromConversations(file).pipe(
  tap(() => rows++),
  broadcast({
    // One row in 49, so that the example ends soon.
    steps: (each) =>
      each.pipe(
        filter((_, place) => place % 49 === 1 && place % 999 !== 0),
        toDatums(renderer),
        batch({ size: 200 }),
        train(trainer, { loss: 'cross_entropy', adam: { learningRate: 1e-2 } }),
      ),
    heldOut: (each) =>
      each.pipe(
        filter((_, place) => place % 999 === 0),
        toDatums(renderer),
        batch({ size: 40, partial: 'drop' }),
        concatMapAhead((datums) => trainer.forward(datums, 'cross_entropy'), { ahead: 0 }),
      ),
  }),
);
await both.forEach(({ pipeline, value }) => {
  mostMb = Math.max(mostMb, process.memoryUsage().heapUsed / 1e6);
  if (pipeline === 'heldOut') console.log(`held out: ${(value.metrics['loss:sum']! / 40).toFixed(3)} nats`);
});
console.log(`${rows} rows were read once, with at most ${mostMb.toFixed(0)} MB of heap`);
await close();
rmSync(file);
