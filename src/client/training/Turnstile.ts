import { AsyncSubject, Observable, defer, finalize, type ObservableInput } from 'rxjs';
import { Queue } from '../../wire/Queue.js';

interface Turn {
  state: 'reserved' | 'ready' | 'running' | 'over';
  run: () => void;
  /** Sends that have started and are not answered yet. */
  sending: number;
  abandoned: boolean;
}

/** What the work of a turn may do with it. */
export interface TurnInHand {
  /** Lets the next turn begin while this one's work continues. */
  readonly release: () => void;
  /**
   * Finishes a send even if its caller stops waiting: the service would wait for ever for a number that is never sent.
   * The turn lasts at least until the send is over. `onAbandoned` is given what was accepted after the caller had gone.
   */
  readonly commit: <S>(send: Observable<S>, onAbandoned: (sent: S) => void) => Observable<S>;
}

/**
 * One at a time, in the order of the calls.
 *
 * A turn is for sending. Its work calls `release` when the last byte is accepted and continues to wait for results
 * outside the turn, so the next turn starts while results are still outstanding. A turn that errors, completes or is
 * abandoned gives up its place by itself, but not in the middle of a send.
 */
export class Turnstile {
  readonly #turns = new Queue<Turn>();
  #advancing = false;

  /** Takes the next turn now, at the call; the work runs when it comes up and the result is subscribed to. */
  take<T>(work: (turn: TurnInHand) => ObservableInput<T>): Observable<T> {
    const turn: Turn = { state: 'reserved', run: () => {}, sending: 0, abandoned: false };
    this.#turns.push(turn);
    const release = (): void => {
      if (turn.state === 'over') return;
      turn.state = 'over';
      this.#advance();
    };
    const abandon = (): void => {
      turn.abandoned = true;
      if (turn.sending === 0) release();
    };
    const commit: TurnInHand['commit'] = (send, onAbandoned) => this.#commit(turn, send, onAbandoned, abandon);
    return new Observable<T>((subscriber) => {
      turn.run = () => subscriber.add(defer(() => work({ release, commit })).subscribe(subscriber));
      turn.state = 'ready';
      subscriber.add(abandon);
      this.#advance();
    });
  }

  #commit<S>(turn: Turn, send: Observable<S>, onAbandoned: (sent: S) => void, abandon: () => void): Observable<S> {
    return new Observable<S>((subscriber) => {
      const sent = new AsyncSubject<S>();
      let awaited = true;
      // Subscribed first, because the second observer may end everything when it is notified.
      sent.subscribe({ next: (value) => awaited || onAbandoned(value), error: () => undefined });
      subscriber.add(() => (awaited = false));
      subscriber.add(sent.subscribe(subscriber));
      turn.sending++;
      send
        .pipe(
          finalize(() => {
            turn.sending--;
            if (turn.abandoned) abandon();
          }),
        )
        .subscribe(sent);
    });
  }

  #advance(): void {
    // A turn may be over before its run returns; the loop below then continues, instead of calling itself.
    if (this.#advancing) return;
    this.#advancing = true;
    for (let next = this.#turns.peek(); next?.state === 'ready' || next?.state === 'over'; next = this.#turns.peek()) {
      if (next.state === 'over') {
        this.#turns.shift();
      } else {
        next.state = 'running';
        next.run();
      }
    }
    this.#advancing = false;
  }
}
