// The same wait with raw undici, which polls for as many results and does nothing else: node rawWaitRun.mjs <{ origin, samples,
// windowSeconds }>. Prints { share } of a core as JSON.
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { printShareOfCore } from './shareOfCore.mjs';

const { origin, samples, windowSeconds } = JSON.parse(process.argv[2]);
const pool = new Pool(origin, { connections: samples, headersTimeout: 0, bodyTimeout: 0 });
const headers = { 'content-type': 'application/json', 'x-api-key': 'tml-bench', accept: 'application/x-protobuf' };
const poll = async (id) => {
  const body = JSON.stringify({ request_id: `r${id}`, allow_metadata_only: true });
  for (;;) {
    const answer = await pool.request({ method: 'POST', path: '/api/v1/retrieve_future', headers, body });
    await answer.body.json();
  }
};
for (let id = 0; id < samples; id++) {
  poll(id).catch(() => undefined);
  // Spread over two seconds, as samples are by the time it takes to submit them.
  if (id % 100 === 99) await sleep(100);
}
await sleep(6000);
await printShareOfCore(windowSeconds);
