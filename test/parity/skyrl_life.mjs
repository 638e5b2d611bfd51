// The client's life against a real SkyRL server: node test/parity/skyrl_life.mjs URL
// Prints what happened, one line a check; exits 1 when any check fails. skyrl_server.py starts the server.
import { ServiceClient } from 'tinker-rx';
import { customLoss } from './skyrl/customLoss.mjs';
import { listing, refusals, takenName } from './skyrl/records.mjs';
import { check, failures, say, within } from './skyrl/report.mjs';
import { sampling } from './skyrl/sampling.mjs';
import { create, saveAndResume, score, train } from './skyrl/training.mjs';

const [url] = process.argv.slice(2);
if (url === undefined) throw new Error('usage: node test/parity/skyrl_life.mjs URL');
const apiKey = 'tml-life';

const events = [];
const service = new ServiceClient({ baseUrl: url, apiKey });
service.events$.subscribe((event) => events.push(event));

async function live() {
  const { baseModel, trainer } = await create(service);
  await train(trainer, events);
  await score(trainer);
  const { path, resumed, fresh } = await saveAndResume(service, trainer);
  await customLoss(fresh);
  const sampler = await sampling(service, trainer, baseModel, apiKey);
  await listing(service, trainer, path);
  await refusals(service, { baseModel, trainer, sampler, path });
  await takenName(resumed, events);
}

try {
  await live();
} catch (error) {
  check('the life was lived to its end', false, error instanceof Error ? error.stack : String(error));
}
const counts = {};
for (const { type } of events) counts[type] = (counts[type] ?? 0) + 1;
say(`       events: ${JSON.stringify(counts)}`);
const closed = within('close', failures() === 0 ? service.close() : service.destroy(), 60_000);
check(
  'close',
  await closed.then(
    () => true,
    () => false,
  ),
);
say(failures() === 0 ? 'every check held' : `${failures()} checks failed`);
process.exit(failures() === 0 ? 0 : 1);
