import { Observable } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';

/**
 * Runs the stream of a picture in virtual time. Gives one row for every subscription to a watched stream: when it began,
 * what came when, and how it ended.
 */
export function record({ stream }) {
  const rows = [];
  const scheduler = new TestScheduler(() => {});
  scheduler.run(({ cold, flush }) => {
    const watch =
      (group, { name = group, label = String } = {}) =>
      (source) =>
        new Observable((subscriber) => {
          const row = { group, name, from: scheduler.frame, values: [], end: undefined };
          rows.push(row);
          const end = (how) => (row.end ??= { frame: scheduler.frame, how });
          subscriber.add(() => end('stopped'));
          return source.subscribe({
            next: (value) => {
              row.values.push({ frame: scheduler.frame, label: label(value) });
              subscriber.next(value);
            },
            error: (error) => {
              end('error');
              subscriber.error(error);
            },
            complete: () => {
              end('complete');
              subscriber.complete();
            },
          });
        });
    stream({ cold, watch }).subscribe({ error: () => {} });
    flush();
  });
  return rows;
}
