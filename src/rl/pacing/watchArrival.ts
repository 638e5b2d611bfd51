import {
  concat,
  concatMap,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  ignoreElements,
  map,
  merge,
  type Observable,
  of,
  type SchedulerLike,
  Subject,
  switchMap,
  takeUntil,
  tap,
} from 'rxjs';
import { longTimer } from '../../support/longTimer.js';
import { ValidationError } from '../../wire/tinkerError.js';
import type { Group } from '../sampling/rollout.js';
import type { Pace } from './Pace.js';
import type { RlListener } from './rlEvent.js';

const PATIENCE_MS = 60_000;

interface Watch {
  readonly report: RlListener;
  readonly timeoutMs: number;
  readonly scheduler: SchedulerLike;
}

/**
 * Passes groups on, and notices when training waits for groups that never arrive. An operator between `rollouts` and `grpo` that drops
 * groups, such as `filter`, would make both wait forever. That is a warning after a minute, and an error after `timeoutMs` more.
 */
export function watchArrival<T>(
  groups: Observable<Group<T>>,
  pace: Pace,
  { report, timeoutMs, scheduler }: Watch,
): Observable<Group<T>> {
  return defer(() => {
    const emitted = new Subject<void>();
    const ended = new Subject<void>();
    const isStuck = () => pace.isStuck;
    const warn = () => report({ type: 'rl-warning', code: 'groups-missing', message: explained(pace) });
    const waiting = merge(emitted, pace.changes).pipe(
      map(isStuck),
      distinctUntilChanged(),
      switchMap((stuck) =>
        stuck
          ? concat(
              longTimer(PATIENCE_MS, scheduler).pipe(filter(isStuck), tap(warn)),
              longTimer(timeoutMs, scheduler).pipe(filter(isStuck)),
            ).pipe(
              map((_, timers) => {
                if (timers > 0) throw new ValidationError(explained(pace));
              }),
            )
          : EMPTY,
      ),
      ignoreElements(),
      takeUntil(ended),
    );
    const passed = groups.pipe(
      // Looks after a group has gone through all that is downstream and synchronous.
      concatMap((group) =>
        concat(
          of(group),
          defer(() => {
            pace.emitted++;
            emitted.next();
            return EMPTY;
          }),
        ),
      ),
      tap({ complete: () => ended.next() }),
    );
    return merge(waiting, passed);
  });
}

const explained = ({ emitted, arrived }: Pace): string =>
  `training waits for groups that rollouts has finished: ${emitted} left it, ${arrived} reached grpo. An operator between them still ` +
  'holds them, or drops them, as filter does. To leave a group out, keep it and set viable: map((group) => ({ ...group, viable: false }))';
