import type { Observable } from 'rxjs';
import { fromRowBatches } from './fromRowBatches.js';
import { SourceError } from './SourceError.js';

/**
 * The chunks of a `ReadableStream`, each read when there is demand for it: the body of a response, a file, a decoder.
 *
 * ```ts
 * fromReadableStream(async (signal) => {
 *   const { body } = await fetch('https://example.org/rows.txt', { signal });
 *   return body!.pipeThrough(new TextDecoderStream());
 * })
 * ```
 * RxJS's `from` keeps reading, whatever is downstream; this one reads nothing while the bounded operator downstream is full,
 * so the stream pauses what feeds it. An error of the stream is the error here. Unsubscribing aborts the signal and cancels the
 * stream at once, also while it waits for a chunk. A stream can be read only once: a second subscribe is an error, and not an
 * empty stream. Give a function that opens it, as above; it may return a promise. Holds one chunk, beside what the stream queues.
 *
 * @see toReadableStream
 * @see docs/native-streams.md
 */
export function fromReadableStream<T>(
  stream: ReadableStream<T> | ((signal: AbortSignal) => ReadableStream<T> | PromiseLike<ReadableStream<T>>),
): Observable<T> {
  const open = typeof stream === 'function' ? stream : once(stream);
  return fromRowBatches((signal) => ({ [Symbol.asyncIterator]: () => chunksOf(open(signal)) }), {
    name: 'fromReadableStream',
  });
}

function once<T>(stream: ReadableStream<T>): () => ReadableStream<T> {
  if (typeof (stream as Partial<ReadableStream<T>> | undefined)?.getReader !== 'function') {
    throw new TypeError(`fromReadableStream needs a ReadableStream, got ${typeof stream}`);
  }
  let taken = false;
  return () => {
    if (taken || stream.locked) {
      const why = 'the stream was read already, and can be read only once. Give a function that opens it';
      throw new SourceError('fromReadableStream', why);
    }
    taken = true;
    return stream;
  };
}

/** Not the stream's own iterator: its `return` waits for the chunk that is asked for, and that may never come. */
function chunksOf<T>(
  stream: ReadableStream<T> | PromiseLike<ReadableStream<T>>,
): AsyncIterator<readonly T[], undefined> {
  const reader = Promise.resolve(stream).then((opened) => opened.getReader());
  return {
    next: async () => {
      const { done, value } = await (await reader).read();
      return done ? { done, value: undefined } : { done, value: [value] };
    },
    return: async () => {
      await (await reader).cancel();
      return { done: true, value: undefined };
    },
  };
}
