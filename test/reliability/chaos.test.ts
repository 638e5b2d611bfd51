/**
 * The embedded service behind faults of its own and a proxy's, 30 % of the requests hurt: what its engine has done must be what it does on
 * a quiet day. `npm run test:chaos` runs more seeds and longer programs; a run prints its seeds, which give the same dice again.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { steady } from '../../src/transport/steadyScheduler.js';
import { hurry } from '../loopback/support/hurry.js';
import { Report } from './support/Report.js';
import { jumpy } from './support/jumpy.js';
import { compare } from './support/Ledger.js';
import { evaluationOf, grpo, preferences, samples, supervised, type Program } from './support/programs.js';
import { perform, type ChaosOptions, type Outcome } from './support/Stage.js';

const LONG = process.env['TINKER_RX_SUITE'] === 'long';
const SEEDS = LONG ? [1, 2, 3, 4, 5] : [1];
const SHARE = 0.3;
/** Waits of the client are shorter by so much: its seconds are 40 ms. */
const HURRY = 25;
const SAMPLES = LONG ? 100 : 40;
/** The long form took 70 s on two quiet cores, and 162 s beside six busy loops. */
const LIMIT_MS = LONG ? 900_000 : 120_000;
const report = new Report('chaos', [
  'requests sent',
  'requests hurt',
  'operations applied',
  'lost',
  'doubled',
  'out of order',
]);
afterAll(() => report.print());
afterAll(() => {
  const sent = report.get('requests sent');
  if (sent === 0) return;
  // What the proxy cuts off never meets the service's own dice; the rest is the luck of so many throws.
  const slack = 0.02 + 4 * Math.sqrt((SHARE * (1 - SHARE)) / sent);
  expect(Math.abs(report.get('requests hurt') / sent - SHARE)).toBeLessThan(slack);
});

const quiet = (program: Program): Promise<Outcome> => perform(program, { seed: 0, share: 0, scheduler: hurry(HURRY) });

async function hurt(program: Program, options: Omit<ChaosOptions, 'share' | 'scheduler'>): Promise<Outcome> {
  const onJump = (): void => report.add('fault: clock jump', 1);
  const scheduler = steady(jumpy(hurry(HURRY), options.seed, onJump));
  const outcome = await perform(program, { share: SHARE, scheduler, ...options });
  report.add('requests sent', outcome.requests);
  for (const [kind, count] of outcome.harms) {
    report.add(`fault: ${kind}`, count);
    if (kind !== 'restart') report.add('requests hurt', count);
  }
  return outcome;
}

const PROGRAMS: readonly (readonly [string, Program])[] = [
  ['supervised training', supervised(LONG ? 40 : 10)],
  ['GRPO', grpo(LONG ? 12 : 4)],
  ['DPO', preferences(LONG ? 16 : 5)],
];

describe.concurrent.each(PROGRAMS)('%s with three of ten requests hurt', (_, program) => {
  it(
    'applies every operation once, in order, to the very same weights, also when it resumes after restarts',
    { timeout: LIMIT_MS },
    async ({ expect }) => {
      const calm = await quiet(program);
      expect(calm.ledger.work.length).toBeGreaterThan(0);
      const expectSame = (outcome: Outcome, tries: number): void => {
        const difference = compare(outcome.ledger.work, calm.ledger.work);
        report.add('operations applied', difference.applied);
        report.add('lost', difference.lost);
        report.add('doubled', difference.doubled);
        report.add('out of order', difference.outOfOrder);
        expect(difference).toStrictEqual({ applied: calm.ledger.work.length, lost: 0, doubled: 0, outOfOrder: 0 });
        expect(outcome.ledger.weights).toBe(calm.ledger.weights);
        expect(outcome.tries, outcome.errors.map(String).join('\n')).toBe(tries);
      };
      for (const seed of SEEDS) {
        expectSame(await hurt(program, { seed }), 1);
        const restartAfterSteps = LONG ? [3, 9] : [3];
        expectSame(await hurt(program, { seed: 100 + seed, restartAfterSteps }), 1 + restartAfterSteps.length);
      }
    },
  );
});

describe.concurrent('samples with three of ten requests hurt', () => {
  it('are answered as on a quiet day, or fail with their reason', { timeout: LIMIT_MS }, async ({ expect }) => {
    const program = samples(SAMPLES);
    const calm = await quiet(program);
    for (const seed of SEEDS) {
      const outcome = await hurt(program, { seed });
      expect(Object.fromEntries(outcome.kept)).toStrictEqual(Object.fromEntries(calm.kept));
      const reasons = [...outcome.kept.values()].filter((result) => result.includes('vocabulary'));
      expect(reasons).toHaveLength(SAMPLES / 5);
      report.add('samples answered', outcome.kept.size - reasons.length);
      report.add('samples failed with their reason', reasons.length);
    }
  });
});

describe.concurrent('an evaluation with three of ten requests hurt', () => {
  it(
    'has every example in its file once, with the answers and scores of a quiet day, also when it resumes after a restart',
    { timeout: LIMIT_MS },
    async ({ expect }) => {
      const examples = LONG ? 60 : 16;
      const program = evaluationOf(examples);
      const calm = await quiet(program);
      expect(calm.kept.size).toBe(examples);
      for (const seed of SEEDS) {
        const restarted = { seed: 100 + seed, restartAfterSteps: [6], stepEndpoint: 'asample' };
        for (const options of [{ seed }, restarted]) {
          const outcome = await hurt(program, options);
          expect(outcome.harms.get('restart') ?? 0).toBe('restartAfterSteps' in options ? 1 : 0);
          expect(Object.fromEntries(outcome.kept)).toStrictEqual(Object.fromEntries(calm.kept));
          report.add('examples evaluated', outcome.kept.size);
        }
      }
    },
  );
});
