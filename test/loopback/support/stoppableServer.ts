/** Run in a process of its own, so that it can be stopped: a fake service over the protocol of its argument. Prints where it listens. */
import { FakeService, reply, type Answer } from './fakeService.js';

const held: Answer = () => undefined;
const answers: Record<string, Answer> = {
  x: reply({}),
  held,
  fails: reply({ detail: 'not now' }, 503),
  asample: reply({ request_id: 'sample' }),
  optim_step: reply({ request_id: 'step' }),
  retrieve_future: (response, hit, request) =>
    (hit.json['request_id'] === 'create' ? reply({ model_id: 'model' }) : held)(response, hit, request),
};
const fake = await (process.argv[2] === 'HTTP/2' ? FakeService.startHttp2(answers) : FakeService.start(answers));
process.stdout.write(`${fake.url}\n`);
process.stdin.resume().on('end', () => process.exit(0));
