/**
 * Run by gateway/upstream.test.ts in a process of its own, to be killed: the embedded service on a port that is given. It
 * forgets everything when it ends. Arguments: port, key, and `paused` for one that accepts samples and runs none.
 */
import { LocalTinker } from '../../src/local/localTinker.js';
import { FakeEngine } from './localFakeEngine.js';

const [port, apiKey, mode] = process.argv.slice(2);
const { controls } = await LocalTinker.start({ engine: new FakeEngine(), port: Number(port), apiKey: apiKey! });
if (mode === 'paused') controls.pause();
process.send?.('ready');
process.on('disconnect', () => process.exit(0));
