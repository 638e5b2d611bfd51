// A server that answers from memory, in a process of its own, so that what is measured is the client.
// Settings, as JSON: { tls: true } speaks HTTP/2 over TLS, as the hosted service does; { sessionPoller: true } offers one poll for all samples; { neverReady: <ms> } holds each poll for a
// sample that long and then says "not yet".
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createSecureServer } from 'node:http2';

const settings = JSON.parse(process.argv[2] ?? '{}');

function varint(value) {
  const bytes = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return Buffer.from([...bytes, value]);
}
const field = (tag, bytes) => Buffer.concat([Buffer.from([tag]), varint(bytes.length), bytes]);

// SampleResponse { sequences: [{ stop_reason: LENGTH, tokens: 64 × int32, logprobs: 64 × float32 }] }
const sample = field(
  0x0a,
  Buffer.concat([Buffer.from([0x08, 0x01]), field(0x12, Buffer.alloc(256, 1)), field(0x1a, Buffer.alloc(256, 0))]),
);

/** ForwardBackwardOutput of as many datums, with one metric and no tensors. */
function passOutput(datums) {
  const record = Buffer.concat([field(0x0a, Buffer.from('Logprobs')), Buffer.from([0x18]), varint(datums)]);
  const one = Buffer.alloc(9, 0x11);
  one.writeDoubleLE(1, 1);
  const metric = Buffer.concat([field(0x0a, Buffer.from('loss:sum')), one]);
  return Buffer.concat([field(0x0a, Buffer.from('Logprobs')), field(0x12, record), field(0x1a, metric)]);
}

/** How many datums (field 3) a ForwardBackwardRequest has. */
function datumsOf(chunks) {
  const body = Buffer.concat(chunks);
  let [at, datums] = [0, 0];
  const read = () => {
    let [value, scale] = [0, 1];
    for (; body[at] >= 128; at++, scale *= 128) value += (body[at] & 127) * scale;
    return value + body[at++] * scale;
  };
  while (at < body.length) {
    const tag = read();
    if (tag >> 3 === 3) datums++;
    const value = read();
    if ((tag & 7) === 2) at += value;
  }
  return datums;
}

const answers = {
  '/api/v1/client/config': settings.sessionPoller ? { sample_use_retrieve_futures: true } : {},
  '/api/v1/client/dynamic_config': {},
  '/api/v1/create_session': { session_id: 's' },
  '/api/v1/create_sampling_session': { sampling_session_id: 's:sample:0' },
  '/api/v1/get_info': { model_id: 's:train:0', model_data: { model_name: 'bench' } },
  '/api/v1/session_heartbeat': {},
  '/api/v1/telemetry': { status: 'accepted' },
  '/api/v1/sessions/s/finish': {},
};

let requests = 0;
let accepted = [];
let poll;
/** The results of training work, by request: a model, or the bytes of a pass. */
const passes = new Map();
const MODEL = Symbol('a model');

function json(response, body, status = 200) {
  response.answer(status, 'application/json', JSON.stringify(body));
}
function protobuf(response, body) {
  response.answer(200, 'application/x-protobuf', body);
}

/** Tells the waiting session poll of all that was accepted since the last one. */
function tellPoller() {
  if (poll === undefined || accepted.length === 0) return;
  const completions = accepted.map((request_id) => ({ state: 'finished', request_id }));
  accepted = [];
  json(poll, { completions, cursor: requests });
  poll = undefined;
}

const routes = {
  '/api/v1/asample': (response) => {
    const request_id = `r${requests++}`;
    json(response, { request_id, sample_sequence_ids: [`q${requests}`] });
    if (!settings.sessionPoller) return;
    accepted.push(request_id);
    setImmediate(tellPoller);
  },
  '/api/v1/retrieve_futures': (response) => {
    poll = response;
    response.on('close', () => {
      if (poll === response) poll = undefined;
    });
    tellPoller();
  },
  '/api/v1/create_model': (response) => {
    const request_id = `m${requests++}`;
    passes.set(request_id, MODEL);
    json(response, { request_id });
  },
  '/api/v1/forward_backward': (response, chunks) => {
    const request_id = `p${requests++}`;
    passes.set(request_id, passOutput(datumsOf(chunks)));
    json(response, { request_id });
  },
  '/api/v1/retrieve_future': (response, chunks) => {
    if (settings.neverReady)
      return setTimeout(() => json(response, { type: 'try_again', queue_state: 'active' }, 408), settings.neverReady);
    // A poll for a sample is not read: there are many, and all get the same.
    const id = passes.size > 0 ? JSON.parse(Buffer.concat(chunks)).request_id : '';
    const result = passes.get(id) ?? sample;
    passes.delete(id);
    if (result === MODEL) json(response, { model_id: 's:train:0', type: 'create_model' });
    else protobuf(response, result);
  },
};

/** Reads a request where that matters, and answers it. */
function serve(path, incoming, response) {
  const chunks = [];
  const reads = path === '/api/v1/forward_backward' || path === '/api/v1/retrieve_future';
  if (reads) incoming.on('data', (chunk) => chunks.push(chunk));
  else incoming.resume();
  incoming.on('end', () => {
    const route = routes[path];
    if (route === undefined) json(response, answers[path] ?? {});
    else route(response, chunks);
  });
}

const pem = (name) => readFileSync(new URL(`./tls/${name}.pem`, import.meta.url));

function plainServer() {
  return createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    response.answer = (status, type, body) => {
      response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
      response.end(body);
    };
    serve(request.url, request, response);
  });
}

/** Streams as they are: node's imitation of HTTP/1.1 over them would be what is measured. */
function secureServer() {
  const settings = { maxConcurrentStreams: 1000 };
  const server = createSecureServer({ key: pem('key'), cert: pem('cert'), settings });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
    stream.answer = (status, type, body) => {
      if (stream.destroyed) return;
      stream.respond({ ':status': status, 'content-type': type, 'content-length': Buffer.byteLength(body) });
      stream.end(body);
    };
    serve(headers[':path'], stream, stream);
  });
  return server;
}

const server = settings.tls ? secureServer() : plainServer();
server.listen(0, 'localhost', () => process.send?.({ port: server.address().port }));
process.on('disconnect', () => process.exit(0));
