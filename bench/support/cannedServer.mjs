// A server that answers the two calls of a sample from memory, in a process of its own, so that what is measured is the client.
import { createServer } from 'node:http';

const sample = Buffer.concat([
  // SampleResponse { sequences: [{ stop_reason: LENGTH, tokens: 64 × int32, logprobs: 64 × float32 }] }
  varint(0x0a, 2 + 2 + 1 + 256 + 2 + 1 + 256),
  Buffer.from([0x08, 0x01]),
  varint(0x12, 256),
  Buffer.alloc(256, 1),
  varint(0x1a, 256),
  Buffer.alloc(256, 0),
]);
function varint(tag, length) {
  return length < 128 ? Buffer.from([tag, length]) : Buffer.from([tag, (length & 127) | 128, length >> 7]);
}

const answers = {
  '/api/v1/client/config': {},
  '/api/v1/client/dynamic_config': {},
  '/api/v1/create_session': { session_id: 's' },
  '/api/v1/create_sampling_session': { sampling_session_id: 's:sample:0' },
  '/api/v1/session_heartbeat': {},
  '/api/v1/telemetry': { status: 'accepted' },
  '/api/v1/sessions/s/finish': {},
};
let requests = 0;
const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  request.resume();
  request.on('end', () => {
    if (request.url === '/api/v1/retrieve_future') {
      response.writeHead(200, { 'content-type': 'application/x-protobuf', 'content-length': sample.length });
      response.end(sample);
      return;
    }
    const body =
      request.url === '/api/v1/asample'
        ? `{"request_id":"r${requests++}","sample_sequence_ids":["q${requests}"]}`
        : JSON.stringify(answers[request.url] ?? {});
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
    response.end(body);
  });
});
server.listen(0, '127.0.0.1', () => process.send?.({ port: server.address().port }));
process.on('disconnect', () => process.exit(0));
