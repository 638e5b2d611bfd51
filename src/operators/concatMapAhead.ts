import { from, Observable, type ObservableInput, type ObservedValueOf, type OperatorFunction } from 'rxjs';
import { currentGate, Gate, withGate } from './gate.js';
import { Listener, type ListenerCallbacks } from './internal/listener.js';
import { Queue } from '../client/connection/Queue.js';

export interface ConcatMapAheadOptions {
  /** How many inners may run behind the one whose turn it is: an integer ≥ 0. 0 is `concatMap`. */
  readonly ahead: number;
  /** Whether an error of the source waits until the results of all that came before it are out. Default: no. */
  readonly delayError?: boolean;
}

/** What an inner that runs ahead may hold before its own gate closes. */
const HELD = 64;

/** An inner from its start to its turn's end. */
class Turn<R> {
  held: R[] | undefined;
  done = false;
  error: { readonly cause: unknown } | undefined;
  constructor(
    /** Whether its values go straight through. */
    public direct: boolean,
    readonly gate: Gate | undefined,
  ) {}
}

/**
 * `concatMap` that does not wait: it starts inners in order and up to `ahead` of them early, and emits in order.
 *
 * ```
 * source    -a-b-c-----------|     ahead 1
 * a          -----w|
 * b            -x-y|               started at once, its values held until a is done
 * c                -----z|         started when a is done
 * result    ------w(xy)-z----|
 * ```
 * An inner's error comes out in its turn, after the values of those before it; nothing new is started once it is known.
 * An error of the source comes out at once, unless `delayError`. A throw of `project` counts as an error of that inner.
 * It completes when the source and all inners have. Unsubscribing stops all of them.
 * It holds what inners that run ahead have emitted (each such inner that knows of gates is paused after 64 values),
 * and queues values that cannot start yet; its {@link Gate} is closed while no more can start.
 *
 * @see mergeMapWeighted for results as they come
 */
export function concatMapAhead<T, O extends ObservableInput<unknown>>(
  project: (value: T, index: number) => O,
  { ahead, delayError = false }: ConcatMapAheadOptions,
): OperatorFunction<T, ObservedValueOf<O>> {
  if (!(ahead >= 0)) throw new RangeError(`ahead must be >= 0, got ${ahead}`);
  type R = ObservedValueOf<O>;
  return (source) =>
    new Observable((subscriber) => {
      const downstream = currentGate();
      const gate = new Gate();
      const waiting = new Queue<T>();
      const turns = new Queue<Turn<R>>();
      let index = 0;
      let ended = false;
      let failed = false;
      let sourceError: { readonly cause: unknown } | undefined;
      let busy = false;
      let stopWaiting: (() => void) | undefined;

      const hasRoom = () => turns.length <= ahead && !failed && (downstream === undefined || downstream.isOpen);

      const inners: ListenerCallbacks<R, Turn<R>> = {
        next: (value, turn) => {
          if (turn.direct) return subscriber.next(value);
          (turn.held ??= []).push(value);
          if (turn.held.length >= HELD) turn.gate?.set(false);
        },
        error: (error, turn) => {
          failed = true;
          turn.error = { cause: error };
          advance();
        },
        complete: (turn) => {
          turn.done = true;
          advance();
        },
      };

      const start = (value: T) => {
        const first = turns.length === 0;
        const turn = new Turn<R>(first, first ? undefined : new Gate(downstream));
        turns.push(turn);
        try {
          const inner = from(project(value, index++)) as Observable<R>;
          const listener = new Listener(subscriber, downstream, inners, turn);
          if (turn.gate === undefined) inner.subscribe(listener);
          else withGate(turn.gate, () => inner.subscribe(listener));
        } catch (error) {
          failed = true;
          turn.error = { cause: error };
        }
      };

      /** Emits what has come to its turn, starts what has room, and tells the source whether to go on. */
      const advance = () => {
        // An inner that ends synchronously comes back here from within the loop, which goes on by itself.
        if (busy) return;
        busy = true;
        for (;;) {
          if (turns.length > 0 && takeTurn(turns.peek()!)) turns.shift();
          else if (waiting.length > 0 && hasRoom() && !subscriber.closed) start(waiting.shift());
          else break;
        }
        busy = false;
        if (turns.length === 0 && waiting.length === 0) {
          if (sourceError !== undefined) subscriber.error(sourceError.cause);
          else if (ended) subscriber.complete();
        }
        if (subscriber.closed) return;
        if (downstream?.isOpen === false && stopWaiting === undefined) {
          stopWaiting = downstream.onceOpen(() => {
            stopWaiting = undefined;
            withGate(downstream, advance);
          });
        }
        gate.set(waiting.length === 0 && hasRoom());
      };

      /** Whether the first turn is over. */
      const takeTurn = (turn: Turn<R>): boolean => {
        if (!turn.direct) {
          // What the inner emits meanwhile is appended, so that it stays behind.
          for (let next = 0; next < (turn.held?.length ?? 0); next++) subscriber.next(turn.held![next] as R);
          turn.held = undefined;
          turn.direct = true;
          turn.gate?.set(true);
        }
        if (turn.error !== undefined) subscriber.error(turn.error.cause);
        return turn.done;
      };

      subscriber.add(() => {
        stopWaiting?.();
        waiting.clear();
      });

      const outer = new Listener<T>(
        subscriber,
        downstream,
        {
          next: (value) => {
            if (busy || turns.length > 0 || waiting.length > 0 || !hasRoom()) waiting.push(value);
            else {
              // The short way, for a source and inners that are in step.
              busy = true;
              start(value);
              busy = false;
            }
            advance();
          },
          error: (error) => {
            if (!delayError) return subscriber.error(error);
            sourceError = { cause: error };
            advance();
          },
          complete: () => {
            ended = true;
            advance();
          },
        },
        undefined,
      );
      advance();
      withGate(gate, () => source.subscribe(outer));
    });
}
