import { map } from 'rxjs';
import { describe, it } from 'vitest';
import { markBatches } from '../../src/operators/training/markBatches.js';
import type { Datum } from '../../src/wire/datum.js';
import { type firehose, keepsContract } from './contract.js';
import { marbles } from './marbles.js';

const rows = (source: ReturnType<typeof firehose>['source']) => source.pipe(map((): readonly Datum[] => []));
const mark = () => {};

// What train does with the marks is in train.test.ts.
describe('markBatches', () => {
  keepsContract({ operator: () => (source) => rows(source).pipe(markBatches(mark)), readsForThree: 3 });

  it(
    'numbers and marks every batch, without holding any back',
    marbles((m) => {
      const source = m.cold('  -a-b-|');
      const subs = '           ^----!';
      const expected = '       -x-y-|';
      const other = () => {};
      const marks = [mark, other];
      m.expect(rows(source).pipe(markBatches(mark), markBatches(other))).toBeObservable(expected, {
        x: { data: [], position: 0, marks },
        y: { data: [], position: 1, marks },
      });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'tells the last batch that it is when told to, and then holds each back until the next',
    marbles((m) => {
      const source = m.cold('  -a-b-|');
      const expected = '       ---x-(y|)';
      m.expect(rows(source).pipe(markBatches(mark, { atEnd: true }))).toBeObservable(expected, {
        x: { data: [], position: 0, marks: [mark] },
        y: { data: [], position: 1, marks: [mark], last: true },
      });
    }),
  );
});
