import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TransportFailure } from '../../../src/transport/Transport.js';
import { AnswerReader, type AnswerSink } from '../../../src/transport/http1/AnswerReader.js';

interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** How many bytes the answer took, where it is complete. */
  readonly length: number | undefined;
}

/** Reads the text in pieces that end at the given places. */
function readIn(text: string, cuts: readonly number[], reader = new AnswerReader()): Seen {
  const bytes = Buffer.from(text, 'latin1');
  let [status, headers, body] = [0, {}, ''];
  const sink: AnswerSink = {
    responseStart: (code, read) => ([status, headers] = [code, read]),
    responseData: (chunk) => (body += chunk.toString('latin1')),
  };
  const places = [0, ...cuts, bytes.length];
  for (let at = 1; at < places.length; at++) {
    const piece = Buffer.from(bytes.subarray(places[at - 1], places[at]));
    const end = reader.read(piece, sink);
    // The reader may keep nothing of what it was given: the next piece is read into the same memory.
    piece.fill('!');
    if (end !== undefined) return { status, headers, body, length: places[at - 1]! + end };
  }
  return { status, headers, body, length: undefined };
}
const read = (text: string): Seen => readIn(text, []);
const failureOf = (act: () => unknown): TransportFailure => {
  try {
    act();
  } catch (error) {
    return error as TransportFailure;
  }
  throw new Error('was read');
};
const bodyOf = (text: string): string => read(text).body;
const after = (head: string, body = ''): string => `HTTP/1.1 200 OK\r\n${head}\r\n\r\n${body}`;
const chunked = (body: string): string => after('transfer-encoding: chunked', body);

describe('an answer', () => {
  it('has a status, headers in lower case and a body', () => {
    const text = after('Content-Type: text/plain\r\nContent-Length: 2', 'hi');
    expect(read(text)).toStrictEqual({
      status: 200,
      headers: { 'content-type': 'text/plain', 'content-length': '2' },
      body: 'hi',
      length: text.length,
    });
  });

  it.each([
    ['a status without a reason', 'HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nhi'],
    [
      'interim answers before it',
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: a\r\n\r\n${after('content-length: 2', 'hi')}`,
    ],
    ['spaces around a value', after('content-length: \t 2 ', 'hi')],
    ['one chunk', chunked('2\r\nhi\r\n0\r\n\r\n')],
    [
      'several chunks, with extensions and a trailer',
      chunked('1;a="b"\r\nh\r\n01\r\ni\r\n0;c\r\nx: y\r\nz: 1\r\n\r\n'),
    ],
    ['an encoding in capitals', after('Transfer-Encoding: Chunked', '2\r\nhi\r\n0\r\n\r\n')],
  ])('may have %s', (_, text) => {
    expect(read(text)).toMatchObject({ status: 200, body: 'hi', length: text.length });
  });

  it.each([204, 304])('with the status %i has no body, whatever its headers say', (status) => {
    const text = `HTTP/1.1 ${status} Nothing\r\ncontent-length: 5\r\n\r\n`;
    expect(read(text)).toMatchObject({ status, body: '', length: text.length });
  });

  it('without a length ends with the connection', () => {
    const reader = new AnswerReader();
    expect(readIn('HTTP/1.1 200 OK\r\n\r\nhello', [], reader)).toMatchObject({ body: 'hello', length: undefined });
    expect([reader.end(), reader.keepsOpen]).toStrictEqual([true, false]);
  });

  it.each(['', 'HTTP/1.1 200 OK\r\ncontent-le', after('content-length: 9', 'hi'), chunked('5\r\nhi')])(
    'is incomplete when the connection ends after %j',
    (text) => {
      const reader = new AnswerReader();
      expect(readIn(text, [], reader).length).toBeUndefined();
      expect(reader.end()).toBe(false);
    },
  );

  it('joins the values of a header that comes twice, also of one that every object has', () => {
    const { headers } = read(after('a: 1\r\nconstructor: 2\r\nA: 3\r\n__proto__: 4\r\ncontent-length: 0'));
    expect(headers).toStrictEqual({ a: '1, 3', constructor: '2', 'content-length': '0' });
  });

  it('ends where its length says; what follows is left', () => {
    const text = after('content-length: 2', 'hi');
    expect(read(`${text}more`)).toMatchObject({ body: 'hi', length: text.length });
    const pieces = chunked('2\r\nhi\r\n0\r\n\r\n');
    expect(read(`${pieces}more`)).toMatchObject({ body: 'hi', length: pieces.length });
  });

  it('is followed by another after a restart', () => {
    const reader = new AnswerReader();
    expect(readIn(chunked('2\r\nhi\r\n0\r\n\r\n'), [], reader).body).toBe('hi');
    reader.restart();
    expect(readIn(after('content-length: 3', 'you'), [], reader).body).toBe('you');
  });

  it('with the head of the answer before it is as good as another, but for the body', () => {
    expect(['one', 'two'].map((body) => bodyOf(after('content-length: 3', body)))).toStrictEqual(['one', 'two']);
  });
});

it('an answer is the same wherever it is cut', () => {
  const interim = 'HTTP/1.1 100 Continue\r\n\r\n';
  const answers = [
    interim + after('content-length: 12\r\nx: y', 'hello\r\n\r\nyou'),
    interim + chunked('6\r\nhello\r\r\n6;x\r\n\n\r\nyou\r\n0\r\na: b\r\n\r\n'),
  ];
  const text = fc.constantFrom(...answers);
  const cuts = fc.array(fc.nat(120), { maxLength: 12 });
  fc.assert(
    fc.property(text, cuts, (answer, places) => {
      const within = places.filter((place) => place <= answer.length).toSorted((a, b) => a - b);
      expect(readIn(answer, within)).toStrictEqual(read(answer));
      expect(read(answer).body).toBe('hello\r\n\r\nyou');
    }),
  );
  for (const answer of answers)
    for (let place = 0; place <= answer.length; place++) expect(readIn(answer, [place])).toStrictEqual(read(answer));
});

describe('what two readers could understand differently is refused', () => {
  it.each([
    ['nothing but an empty line', '\r\n\r\n'],
    ['a length with another kind of space', after('content-length:\xa02', 'hi')],
    ['an encoding with another kind of space', after('transfer-encoding: chunked\xa0', '2\r\nhi\r\n0\r\n\r\n')],
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['another version', 'HTTP/2.0 200 OK\r\ncontent-length: 2\r\n\r\nhi'],
    ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
    ['a change of the protocol', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n'],
    ['two lengths', after('content-length: 2\r\ncontent-length: 3', 'hi')],
    ['a length and chunks', after('content-length: 2\r\ntransfer-encoding: chunked', '2\r\nhi\r\n0\r\n\r\n')],
    ['a length with a sign', after('content-length: +2', 'hi')],
    ['a length in hexadecimal', after('content-length: 0x2', 'hi')],
    ['an empty length', after('content-length:', 'hi')],
    ['a length that no number holds', after('content-length: 99999999999999999999', 'hi')],
    ['another encoding', after('transfer-encoding: gzip, chunked', '2\r\nhi\r\n0\r\n\r\n')],
    ['a folded header', after('x: a\r\n b\r\ncontent-length: 2', 'hi')],
    ['a space before a colon', after('content-length : 2', 'hi')],
    ['a header without a colon', after('content-length\r\nx: y', 'hi')],
    ['a header without a name', after(': 2', 'hi')],
    ['a NUL in a header', after('x: a\0b', 'hi')],
    ['a line feed alone in a header', after('x: a\ncontent-length: 2', 'hi')],
    ['a carriage return alone in a header', after('x: a\r\r\ncontent-length: 2', 'hi')],
    ['a chunk of no size', chunked('\r\nhi\r\n0\r\n\r\n')],
    ['a chunk of a negative size', chunked('-2\r\nhi\r\n0\r\n\r\n')],
    ['a chunk of too great a size', chunked('fffffffffffffff\r\nhi')],
    ['a space behind the size of a chunk', chunked('2 \r\nhi\r\n0\r\n\r\n')],
    ['a chunk that is longer than it says', chunked('2\r\nhello\r\n0\r\n\r\n')],
  ])('%s', (_, text) => {
    const failure = failureOf(() => read(text));
    expect([failure.kind, failure.message]).toStrictEqual(['connection', expect.stringContaining('not valid HTTP')]);
  });

  it.each(['x'.repeat(17_000), `x: ${'y'.repeat(17_000)}\r\n\r\n`])('headers without an end', (text) => {
    const head = `HTTP/1.1 200 OK\r\n${text}`;
    for (const cuts of [[], [100, 8000]])
      expect(failureOf(() => readIn(head, cuts))).toMatchObject({
        kind: 'answer',
        message: "the answer's headers are longer than 16 KiB",
      });
  });

  it.each(['0'.repeat(17_000), `0\r\n${'x: y\r\n'.repeat(4000)}`])('lines between chunks without an end', (text) => {
    for (const cuts of [[], [100, 8000]])
      expect(failureOf(() => readIn(chunked(text), cuts))).toMatchObject({ kind: 'answer' });
  });
});

describe('a connection', () => {
  const keptBy = (head: string, version = '1.1'): number | false => {
    const reader = new AnswerReader();
    readIn(`HTTP/${version} 200 OK\r\n${head}content-length: 0\r\n\r\n`, [], reader);
    return reader.keepsOpen && reader.keepAliveMs;
  };
  it.each([
    ['is kept for four seconds where the server says nothing', '', '1.1', 4000],
    ['is given up two seconds before the server would close it', 'keep-alive: timeout=60\r\n', '1.1', 58_000],
    ['is kept for ten minutes at most', 'Keep-Alive: max=5, timeout=86400\r\n', '1.1', 600_000],
    ['is not kept where that leaves no time', 'keep-alive: timeout=2\r\n', '1.1', false],
    ['is not kept where the server closes it', 'Connection: Close\r\n', '1.1', false],
    ['of HTTP/1.0 is not kept', '', '1.0', false],
    ['of HTTP/1.0 is kept where the server says so', 'connection: Keep-Alive\r\n', '1.0', 4000],
  ])('%s', (_, head, version, expected) => {
    expect(keptBy(head, version)).toBe(expected);
  });
});
