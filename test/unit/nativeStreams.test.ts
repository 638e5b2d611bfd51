/** `ReadableStream`, `WritableStream` and `TransformStream` in and out: bounds, and cancelling and errors in both directions. */
import {
  concat,
  lastValueFrom,
  map,
  NEVER,
  type Observable,
  of,
  range,
  Subject,
  take,
  throwError,
  toArray,
} from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { concatMapAhead } from '../../src/operators/index.js';
import { toReadableStream } from '../../src/sinks/index.js';
import { fromArray, fromReadableStream, SourceError } from '../../src/sources/index.js';
import { gated } from '../marbles/gated.js';

const all = <T>(stream: Observable<T>): Promise<T[]> => lastValueFrom(stream.pipe(toArray()));

/** 0, 1, 2, … as they are pulled. */
function counted(count = Infinity) {
  const seen = { pulled: 0, cancelled: [] as unknown[] };
  const stream = new ReadableStream<number>(
    {
      pull: (controller) => {
        if (seen.pulled < count) controller.enqueue(seen.pulled++);
        else controller.close();
      },
      cancel: (reason) => void seen.cancelled.push(reason),
    },
    { highWaterMark: 0 },
  );
  return { stream, seen };
}

/** Lets everything run that waits for promises only. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('fromReadableStream', () => {
  it('gives every chunk in order, and completes', async () => {
    expect(await all(fromReadableStream(counted(4).stream))).toStrictEqual([0, 1, 2, 3]);
    expect(await all(fromReadableStream(counted(0).stream))).toStrictEqual([]);
  });

  it('reads nothing before it is subscribed to', async () => {
    const { stream, seen } = counted();
    fromReadableStream(stream);
    await settled();
    expect(seen.pulled).toBe(0);
    expect(stream.locked).toBe(false);
  });

  it('reads no chunk while the bounded operator downstream is full', async () => {
    const { stream, seen } = counted();
    const gates: Subject<void>[] = [];
    const slow = fromReadableStream(stream).pipe(
      concatMapAhead(
        () => {
          const done = new Subject<void>();
          gates.push(done);
          return done;
        },
        { ahead: 1 },
      ),
    );
    const subscription = slow.subscribe();
    await vi.waitFor(() => expect(gates).toHaveLength(2));
    await settled();
    // Two run; the one that was asked for with the second waits.
    expect(seen.pulled).toBeLessThanOrEqual(3);
    const before = seen.pulled;
    gates[0]!.complete();
    await vi.waitFor(() => expect(gates).toHaveLength(3));
    await settled();
    expect(seen.pulled).toBe(before + 1);
    subscription.unsubscribe();
  });

  it('cancels the stream when it is unsubscribed, also while it waits for a chunk', async () => {
    const cancelled = vi.fn();
    const silent = new ReadableStream<number>({ cancel: cancelled });
    const subscription = fromReadableStream(silent).subscribe();
    await settled();
    subscription.unsubscribe();
    await vi.waitFor(() => expect(cancelled).toHaveBeenCalledOnce());
    const { stream, seen } = counted();
    expect(await all(fromReadableStream(stream).pipe(take(3)))).toStrictEqual([0, 1, 2]);
    await vi.waitFor(() => expect(seen.cancelled).toHaveLength(1));
  });

  it('cancels a stream that opens after it was unsubscribed, and aborts the signal', async () => {
    const opening = new Subject<ReadableStream<number>>();
    let aborted: AbortSignal | undefined;
    const subscription = fromReadableStream<number>((signal) => {
      aborted = signal;
      return lastValueFrom(opening);
    }).subscribe();
    subscription.unsubscribe();
    expect(aborted!.aborted).toBe(true);
    const { stream, seen } = counted();
    opening.next(stream);
    opening.complete();
    await vi.waitFor(() => expect(seen.cancelled).toHaveLength(1));
  });

  it('passes the error of the stream, and of the function that opens it', async () => {
    const failing = new ReadableStream<number>({ start: (controller) => controller.error(new Error('broken')) });
    await expect(all(fromReadableStream(failing))).rejects.toThrow('broken');
    await expect(all(fromReadableStream<number>(() => Promise.reject(new Error('closed'))))).rejects.toThrow('closed');
    const thrown = () => {
      throw new Error('at once');
    };
    await expect(all(fromReadableStream<number>(thrown))).rejects.toThrow('at once');
  });

  it('opens a stream for every subscriber, and refuses to read one stream twice', async () => {
    const often = fromReadableStream(() => counted(2).stream);
    expect(await all(often)).toStrictEqual([0, 1]);
    expect(await all(often)).toStrictEqual([0, 1]);
    const once = fromReadableStream(counted(2).stream);
    await all(once);
    await expect(all(once)).rejects.toThrow(SourceError);
    expect(() => fromReadableStream('rows' as never)).toThrow(TypeError);
  });

  it('reads a response', async () => {
    const lines = fromReadableStream(() => new Response('a\nb').body!.pipeThrough(new TextDecoderStream()));
    expect((await all(lines)).join('')).toBe('a\nb');
  });
});

describe('toReadableStream', () => {
  const read = async <T>(stream: ReadableStream<T>): Promise<T[]> => all(fromReadableStream(stream));

  it('gives every value in order, and closes', async () => {
    expect(await read(toReadableStream(range(0, 4)))).toStrictEqual([0, 1, 2, 3]);
    expect(await read(toReadableStream(of<number>()))).toStrictEqual([]);
  });

  it('subscribes with the first read, and asks for one value at a time', async () => {
    const { source, sent } = gated(100);
    const reader = toReadableStream(source).getReader();
    await settled();
    expect(sent()).toBe(0);
    expect(await reader.read()).toStrictEqual({ done: false, value: 0 });
    await settled();
    expect(sent()).toBe(1);
    await reader.read();
    await reader.read();
    await settled();
    expect(sent()).toBe(3);
  });

  it('unsubscribes when it is cancelled, also while a value is waited for', async () => {
    const source = new Subject<number>();
    const reader = toReadableStream(source).getReader();
    const waiting = reader.read();
    await vi.waitFor(() => expect(source.observed).toBe(true));
    await reader.cancel();
    expect(await waiting).toStrictEqual({ done: true, value: undefined });
    expect(source.observed).toBe(false);
    await toReadableStream(NEVER).cancel();
  });

  it('passes the error of the stream in its turn', async () => {
    const source = concat(
      of(1),
      throwError(() => new Error('no')),
    );
    const reader = toReadableStream(source).getReader();
    expect(await reader.read()).toStrictEqual({ done: false, value: 1 });
    await expect(reader.read()).rejects.toThrow('no');
  });

  it('is the body of a response', async () => {
    const bytes = fromArray(['one\n', 'two\n']).pipe(map((line) => new TextEncoder().encode(line)));
    expect(await new Response(toReadableStream(bytes)).text()).toBe('one\ntwo\n');
  });
});

describe('a WritableStream', () => {
  /** Takes one chunk at a time, each when it is told to. */
  function slow(highWaterMark: number) {
    const written: number[] = [];
    const finish: (() => void)[] = [];
    const ends: unknown[] = [];
    const stream = new WritableStream<number>(
      {
        write: (chunk) => {
          written.push(chunk);
          return new Promise((resolve) => finish.push(resolve));
        },
        close: () => void ends.push('closed'),
        abort: (reason) => void ends.push(reason),
      },
      { highWaterMark },
    );
    return { stream, written, finish, ends };
  }

  it('that is slow holds as many chunks as its queue, and the source waits', async () => {
    const { source, sent } = gated(100);
    const { stream, written, finish } = slow(4);
    void toReadableStream(source).pipeTo(stream);
    await vi.waitFor(() => expect(sent()).toBe(4));
    await settled();
    expect(sent()).toBe(4);
    expect(written).toStrictEqual([0]);
    finish.shift()!();
    await vi.waitFor(() => expect(sent()).toBe(5));
    await settled();
    expect(sent()).toBe(5);
  });

  it('is closed when the stream completes, and aborted when it fails', async () => {
    const done = slow(1);
    const piped = toReadableStream(range(0, 2)).pipeTo(done.stream);
    for (let chunk = 0; chunk < 2; chunk++) {
      await vi.waitFor(() => expect(done.finish).toHaveLength(1));
      done.finish.shift()!();
    }
    await piped;
    expect(done).toMatchObject({ written: [0, 1], ends: ['closed'] });
    const failed = slow(1);
    await expect(toReadableStream(throwError(() => new Error('no'))).pipeTo(failed.stream)).rejects.toThrow('no');
    expect(failed.ends).toStrictEqual([new Error('no')]);
  });

  it('that fails unsubscribes from the stream', async () => {
    const source = new Subject<number>();
    const broken = new WritableStream<number>({
      write: () => {
        throw new Error('disk full');
      },
    });
    const piped = toReadableStream(source).pipeTo(broken);
    await vi.waitFor(() => expect(source.observed).toBe(true));
    source.next(1);
    await expect(piped).rejects.toThrow('disk full');
    expect(source.observed).toBe(false);
  });

  it('as a source: what is written comes out, and the writer waits while downstream is full', async () => {
    const { readable, writable } = new TransformStream<number, number>();
    const writer = writable.getWriter();
    const running: Subject<void>[] = [];
    const full = fromReadableStream(readable).pipe(
      concatMapAhead(
        () => {
          running.push(new Subject());
          return running.at(-1)!;
        },
        { ahead: 0 },
      ),
    );
    const subscription = full.subscribe();
    let accepted = 0;
    const write = async () => {
      for (let value = 0; value < 50; value++, accepted++) await writer.write(value);
    };
    const writing = write();
    await vi.waitFor(() => expect(running).toHaveLength(1));
    await settled();
    const held = accepted;
    expect(held).toBeLessThanOrEqual(3);
    running[0]!.complete();
    await vi.waitFor(() => expect(running).toHaveLength(2));
    await settled();
    expect(accepted).toBe(held + 1);
    // Whoever writes is told that nobody reads any more.
    subscription.unsubscribe();
    await expect(writing).rejects.toBeUndefined();
  });
});
