import {
  from,
  Observable,
  type ObservableInput,
  type ObservedValueOf,
  type OperatorFunction,
  type Subscription,
} from 'rxjs';
import { checkAtLeast } from '../../support/checks.js';
import { Queue } from '../../support/Queue.js';
import { Gate, withGate } from '../pressure/gate.js';
import { Downstream, type Heard, listen, mayBeFed } from '../pressure/shared/listen.js';
import { WatchedQueue } from '../pressure/shared/backpressureEvents.js';

/** Options of `concatMapAhead`. */
export interface ConcatMapAheadOptions {
  /** How many inners may run behind the one whose turn it is: an integer ≥ 0. 0 is `concatMap`. */
  readonly ahead: number;
  /** Whether an error of the source waits until the results of all that came before it are out. Default: no. */
  readonly delayError?: boolean;
}

/** What an inner that runs ahead may hold before its own gate closes. */
const HELD = 64;

/** An inner from its start to its turn's end. */
class InnerTurn<R> {
  held: Queue<R> | undefined;
  listener: Subscription | undefined;
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
 * and queues values that cannot start yet; its {@link Gate} is closed while no more can start. Values that are Observables
 * (`window`, `groupBy`) may need the source to continue before they can end: with them, the gate stays open.
 *
 * @see mergeMapWeighted for results as they come
 */
export function concatMapAhead<T, O extends ObservableInput<unknown>>(
  project: (value: T, index: number) => O,
  { ahead, delayError = false }: ConcatMapAheadOptions,
): OperatorFunction<T, ObservedValueOf<O>> {
  checkAtLeast({ ahead }, 0);
  type R = ObservedValueOf<O>;
  return (source) =>
    new Observable<R>((subscriber) => {
      const gate = new Gate();
      const waiting = new WatchedQueue<T>('concatMapAhead');
      const turns = new Queue<InnerTurn<R>>();
      let index = 0;
      let ended = false;
      let failed = false;
      let fed = false;
      let sourceError: { readonly cause: unknown } | undefined;
      let busy = false;

      const hasRoom = () => turns.length <= ahead && !failed && downstream.isOpen;

      const inners: Heard<R, InnerTurn<R>> = {
        next: (value, turn) => {
          if (turn.direct) return subscriber.next(value);
          (turn.held ??= new WatchedQueue('concatMapAhead')).push(value);
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
        const turn = new InnerTurn<R>(first, first ? undefined : new Gate(downstream.gate));
        turns.push(turn);
        try {
          const inner = from(project(value, index++)) as Observable<R>;
          turn.listener = withGate(turn.gate ?? downstream.gate, () => listen(inner, downstream, inners, turn));
        } catch (error) {
          failed = true;
          turn.error = { cause: error };
        }
      };

      /** Emits what has come to its turn, starts what has room, and tells the source whether to continue. */
      const advance = () => {
        // Re-entrant call of an inner that ends synchronously: the running loop handles it.
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
        downstream.waitIfClosed();
        gate.set(fed || (waiting.length === 0 && hasRoom()));
      };

      /** Whether the first turn is over. */
      const takeTurn = (turn: InnerTurn<R>): boolean => {
        if (!turn.direct) {
          // What the inner emits meanwhile is appended, so that it stays behind.
          while (turn.held !== undefined && turn.held.length > 0) subscriber.next(turn.held.shift());
          turn.held = undefined;
          turn.direct = true;
          turn.gate?.set(true);
        }
        if (turn.error !== undefined) subscriber.error(turn.error.cause);
        return turn.done;
      };

      const downstream = new Downstream<R>(subscriber, advance);
      const outer: Heard<T, undefined> = {
        next: (value) => {
          fed ||= mayBeFed(value);
          waiting.push(value);
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
      };
      advance();
      withGate(gate, () => listen(source, downstream, outer, undefined));
      // After the source and the inners, which must not run on: others may share their gates.
      subscriber.add(() => {
        waiting.clear();
        gate.set(true);
        while (turns.length > 0) {
          const { listener, gate: own } = turns.shift();
          listener?.unsubscribe();
          own?.set(true);
        }
      });
    });
}
