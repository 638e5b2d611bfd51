import { Observable, defer, type ObservableInput } from 'rxjs';

interface Turn {
  state: 'reserved' | 'ready' | 'running' | 'over';
  run: () => void;
}

/**
 * One at a time, in the order of the calls.
 *
 * A turn is for sending. Its work calls `release` when the last byte is accepted and goes on waiting for results
 * outside the turn, so the next turn starts while results are still outstanding. A turn that errors, completes or is
 * abandoned gives up its place by itself.
 */
export class Turnstile {
  readonly #turns: Turn[] = [];
  #advancing = false;

  /** Takes the next turn now, at the call; the work runs when it comes up and the result is subscribed to. */
  take<T>(work: (release: () => void) => ObservableInput<T>): Observable<T> {
    const turn: Turn = { state: 'reserved', run: () => {} };
    this.#turns.push(turn);
    const release = (): void => {
      if (turn.state === 'over') return;
      turn.state = 'over';
      this.#advance();
    };
    return new Observable<T>((subscriber) => {
      turn.run = () => subscriber.add(defer(() => work(release)).subscribe(subscriber));
      turn.state = 'ready';
      subscriber.add(release);
      this.#advance();
    });
  }

  #advance(): void {
    // A turn may be over before its run returns; the loop below then goes on, instead of nesting ever deeper.
    if (this.#advancing) return;
    this.#advancing = true;
    for (let next = this.#turns[0]; next?.state === 'ready' || next?.state === 'over'; next = this.#turns[0]) {
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
