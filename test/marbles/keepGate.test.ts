import { of } from 'rxjs';
import { describe, it } from 'vitest';
import { keepGate } from '../../src/operators/pressure/keepGate.js';
import { keepsContract } from './contract.js';
import { marbles } from './marbles.js';

// What it does to gates is in gate.test.ts.
describe('keepGate', () => {
  keepsContract({ operator: () => keepGate(), readsForThree: 3 });

  it(
    'passes values, errors and completion unchanged',
    marbles((m) => {
      const source = m.cold('  -a-b-|');
      const failing = m.cold(' -a-#');
      m.expect(source.pipe(keepGate())).toBeObservable('-a-b-|');
      m.expect(failing.pipe(keepGate())).toBeObservable('-a-#');
      m.expect(of('a').pipe(keepGate())).toBeObservable('(a|)');
    }),
  );
});
