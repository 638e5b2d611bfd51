// The embedded service in a process of its own, so that what is measured is what stands before it.
import { LocalTinker } from '../../dist/local/index.js';

const { url, apiKey } = await LocalTinker.start();
process.send?.({ url, apiKey });
process.on('disconnect', () => process.exit(0));
