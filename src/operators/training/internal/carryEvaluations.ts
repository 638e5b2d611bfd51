import { concatMap, type MonoTypeOperatorFunction, Observable, Subject } from 'rxjs';
import type { Evaluation } from '../step.js';
import { Downstream, listen } from '../../pressure/shared/listen.js';
import type { SubmittedStep } from './submitSteps.js';

/**
 * Runs evaluations beside the stream of steps, one after the other, and lets each result travel on the next step.
 *
 * While any is running the latest step is held back, so that there is always a step left to carry its result. Errors, of
 * an evaluation or of the source, are passed after the step held back.
 */
export function carryEvaluations(): MonoTypeOperatorFunction<SubmittedStep> {
  return (source) =>
    new Observable((subscriber) => {
      const jobs = new Subject<Observable<Evaluation>>();
      let running = 0;
      let finished: Evaluation[] = [];
      let held: SubmittedStep | undefined;
      let ended = false;

      const release = () => {
        if (held === undefined) return;
        const { step } = held;
        const out = finished.length === 0 ? held : { ...held, step: { ...step, evaluations: finished } };
        held = undefined;
        finished = [];
        subscriber.next(out);
      };
      const settle = () => {
        if (running > 0) return;
        release();
        if (ended) subscriber.complete();
      };

      const fail = (error: unknown) => {
        release();
        subscriber.error(error);
      };

      const to = new Downstream(subscriber);
      listen(
        jobs.pipe(concatMap((job) => job)),
        to,
        {
          next: (evaluation) => {
            finished.push(evaluation);
            running--;
            settle();
          },
          error: fail,
          complete: () => {},
        },
        undefined,
      );
      listen(
        source,
        to,
        {
          next: (arrived) => {
            const { evaluations } = arrived.marks;
            release();
            held = arrived;
            running += evaluations.length;
            for (const evaluation of evaluations) jobs.next(evaluation);
            settle();
          },
          error: fail,
          complete: () => {
            ended = true;
            settle();
          },
        },
        undefined,
      );
    });
}
