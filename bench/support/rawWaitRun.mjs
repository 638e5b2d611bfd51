// The same wait with raw undici or, over TLS, with node:http2, which polls for as many results and does nothing else:
// node rawWaitRun.mjs <{ origin, samples, windowSeconds }>. Prints { share } of a core as JSON.
import { connect } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { HEADERS, postOver } from './samplers.mjs';
import { printShareOfCore } from './shareOfCore.mjs';

const STREAMS = 1000;
const { origin, samples, windowSeconds } = JSON.parse(process.argv[2]);
const accept = 'application/x-protobuf';
const path = '/api/v1/retrieve_future';

function poster() {
  if (origin.startsWith('https:')) {
    const sessions = Array.from({ length: Math.ceil(samples / STREAMS) }, () => connect(origin));
    return (id, body) => postOver(sessions[id % sessions.length], path, accept, body);
  }
  const pool = new Pool(origin, { connections: samples, headersTimeout: 0, bodyTimeout: 0 });
  return async (_, body) => {
    const answer = await pool.request({ method: 'POST', path, headers: { ...HEADERS, accept }, body });
    return Buffer.from(await answer.body.arrayBuffer());
  };
}

const post = poster();
const poll = async (id) => {
  const body = JSON.stringify({ request_id: `r${id}`, allow_metadata_only: true });
  for (;;) JSON.parse(await post(id, body));
};
for (let id = 0; id < samples; id++) {
  poll(id).catch(() => undefined);
  // Spread over two seconds, as samples are by the time it takes to submit them.
  if (id % 100 === 99) await sleep(100);
}
await sleep(6000);
await printShareOfCore(windowSeconds);
