import { TestScheduler, type RunHelpers } from 'rxjs/testing';
import { expect } from 'vitest';

/** A marble test of a client. A client's session beats until it is closed, so the test says when time ends. */
export const marbles =
  (endsMs: number, test: (helpers: RunHelpers & { readonly scheduler: TestScheduler }) => void) => (): void => {
    const scheduler = new TestScheduler((actual, expected) => expect(actual).toStrictEqual(expected));
    scheduler.run((helpers) => {
      scheduler.maxFrames = endsMs;
      test({ ...helpers, scheduler });
    });
  };
