/** Records calls into a file that other processes write to as well, or opens it again and again. */
import { recordCalls } from '../../src/serve/traffic/CallRecorder.js';

const [, , file = '', name = '', count = '0', mode = 'write'] = process.argv;
const content = 'A long question, so that a line takes more than one page. '.repeat(2000);
const recorder = recordCalls(file);
for (let index = 0; index < Number(count); index++) {
  if (mode === 'open') recordCalls(file).close();
  else
    recorder.record({
      ...{ type: 'call', id: `${name}-${index}`, at: '2026-11-18T00:00:00.000Z', api: 'chat', model: 'm' },
      ...{ messages: [{ role: 'user', content }], status: 200, latencyMs: 1 },
      reply: { role: 'assistant', content: `answer ${index}` },
    });
  if (index === 20) process.stdout.write('going\n');
}
recorder.close();
