import { Observable, type SchedulerLike } from 'rxjs';
import { LONGEST_TIMER_MS } from './system.js';
import { TransportFailure, type Transport } from './Transport.js';

/** The slowest line that is waited for. */
const SLOWEST_BYTES_PER_SECOND = 64_000;

/**
 * The transport with a limit on the time to the whole answer: the request's `timeoutMs`, and what a line of 64 kB per second needs for
 * the body and for an answer of known size. This is the only place with a time limit for requests.
 */
export const withTimeout =
  (transport: Transport, scheduler: SchedulerLike): Transport =>
  (request) => {
    const { timeoutMs, body = '', answerBytes = 0 } = request;
    const bodySeconds = Math.floor((body.length + answerBytes) / SLOWEST_BYTES_PER_SECOND);
    const limitMs = Math.min(timeoutMs + 1000 * bodySeconds, LONGEST_TIMER_MS);
    // Not RxJS's `timeout`, which takes a subscriber and three closures more for each request: thousands may be in flight.
    return new Observable((subscriber) => {
      const late = (): void =>
        subscriber.error(new TransportFailure('timeout', `no answer within ${limitMs / 1000} s`));
      subscriber.add(scheduler.schedule(late, limitMs));
      transport(request).subscribe(subscriber);
    });
  };
