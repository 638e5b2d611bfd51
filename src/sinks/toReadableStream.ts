import type { Observable } from 'rxjs';
import { toAsyncIterable } from './toAsyncIterable.js';

/**
 * The values of a stream as a `ReadableStream`: for the body of a response, and for everything that pipes.
 *
 * ```ts
 * await toReadableStream(steps).pipeTo(new WritableStream({ write: (step) => console.log(step.loss) }));
 * ```
 * Subscribes with the first chunk that is asked for. It is a bounded operator: files and other sources of this library
 * pause until the next chunk is asked for. What comes nevertheless, from sources that cannot pause, is queued. The stream's
 * error is that of the `ReadableStream`. Cancelling it unsubscribes, and so do `pipeTo` and `pipeThrough` where what they write to fails.
 * It reads ahead of nothing; what it is piped into holds as many chunks as its own queue.
 *
 * @see fromReadableStream
 * @see docs/native-streams.md
 */
export function toReadableStream<T>(source: Observable<T>): ReadableStream<T> {
  const values = toAsyncIterable(source)[Symbol.asyncIterator]();
  return new ReadableStream<T>(
    {
      pull: async (controller) => {
        const { done, value } = await values.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      cancel: async () => {
        await values.return!();
      },
    },
    // None asked for in advance, so nothing is subscribed to before the first read.
    { highWaterMark: 0 },
  );
}
