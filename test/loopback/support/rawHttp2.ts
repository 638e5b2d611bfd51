import { createServer, type Server, type TLSSocket } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { identity } from './fakeService.js';

export const DATA = 0;
const HEADERS = 1;
export const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
export const END_STREAM = 1;
const ACK = 1;
const END_HEADERS = 4;
const PREFACE_BYTES = 24;
const HEAD_BYTES = 9;

/** One frame of HTTP/2 (RFC 9113, section 4.1). */
export function frame(type: number, flags: number, stream: number, payload: string | Buffer = ''): Buffer {
  const body = Buffer.from(payload as string);
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(body.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, body]);
}

/** The headers of a 200 (RFC 7541: index 8 of the static table), with a length (index 28, as a literal) where one is given. */
export function ok(stream: number, length?: number): Buffer {
  const text = String(length);
  const literal = length === undefined ? [] : [0x0f, 0x0d, text.length, ...Buffer.from(text)];
  return frame(HEADERS, END_HEADERS, stream, Buffer.from([0x88, ...literal]));
}

/** A server over TLS that answers every request with the bytes it is told, which Node's own server would not send. */
export async function rawHttp2(answer: (stream: number) => Buffer): Promise<Server & { readonly url: string }> {
  const server = createServer({ ...identity(), ALPNProtocols: ['h2'] }, (socket) => serve(socket, answer));
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  return Object.assign(server, { url: `https://localhost:${(server.address() as AddressInfo).port}` });
}

function serve(socket: TLSSocket, answer: (stream: number) => Buffer): void {
  let bytes = Buffer.alloc(0);
  let hasPreface = false;
  socket.on('error', () => undefined);
  socket.write(frame(SETTINGS, 0, 0));
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    if (!hasPreface) {
      if (bytes.length < PREFACE_BYTES) return;
      bytes = bytes.subarray(PREFACE_BYTES);
      hasPreface = true;
    }
    while (bytes.length >= HEAD_BYTES) {
      const length = HEAD_BYTES + bytes.readUIntBE(0, 3);
      if (bytes.length < length) return;
      const [type, flags, stream] = [bytes[3]!, bytes[4]!, bytes.readUInt32BE(5)];
      const payload = bytes.subarray(HEAD_BYTES, length);
      bytes = bytes.subarray(length);
      if (type === PING && (flags & ACK) === 0) socket.write(frame(PING, ACK, 0, payload));
      if (type === SETTINGS && (flags & ACK) === 0) socket.write(frame(SETTINGS, ACK, 0));
      if ((type === DATA || type === HEADERS) && (flags & END_STREAM) !== 0) socket.write(answer(stream));
    }
  });
}
