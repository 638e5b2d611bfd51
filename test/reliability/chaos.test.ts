/**
 * The embedded service behind faults of its own and a proxy's, 30 % of the requests hurt: what its engine has done must be what it does on
 * a quiet day. `npm run test:chaos` runs more seeds and longer programs; a run prints its seeds, which give the same dice again.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { steady } from '../../src/transport/schedulers.js';
import { hurry } from '../loopback/support/hurry.js';
import { Report } from './support/Report.js';
import { jumpy } from './support/jumpy.js';
import { compare } from './support/Ledger.js';
import { evaluationOf, grpo, preferences, samples, supervised, type Program } from './support/programs.js';
import { perform, type ChaosOptions, type Outcome, type Protocol } from './support/Stage.js';

const LONG = process.env['TINKER_RX_SUITE'] === 'long';
const SEEDS = LONG ? [1, 2, 3, 4, 5] : [1];
const SHARE = 0.3;
/** Waits of the client are shorter by so much: its seconds are 40 ms. */
const HURRY = 25;
const SAMPLES = LONG ? 100 : 40;
/** The short form took 47 s on two cores that others used as well. */
const LIMIT_MS = LONG ? 1_800_000 : 240_000;
const COUNTS = ['requests sent', 'requests hurt', 'operations applied', 'lost', 'doubled', 'out of order'];
const REPORTS: Readonly<Record<Protocol, Report>> = {
  'HTTP/1.1': new Report('chaos over HTTP/1.1', COUNTS),
  'HTTP/2': new Report('chaos over HTTP/2', COUNTS),
};
const PROTOCOLS = Object.keys(REPORTS) as readonly Protocol[];
afterAll(() => Object.values(REPORTS).forEach((report) => report.print()));
afterAll(() => Object.values(REPORTS).forEach(expectShare));

function expectShare(report: Report): void {
  const sent = report.get('requests sent');
  if (sent === 0) return;
  // What the proxy cuts off never meets the service's own dice; the rest is the luck of so many throws.
  const slack = 0.02 + 4 * Math.sqrt((SHARE * (1 - SHARE)) / sent);
  expect(Math.abs(report.get('requests hurt') / sent - SHARE)).toBeLessThan(slack);
}

const quiet = (program: Program): Promise<Outcome> => perform(program, { seed: 0, share: 0, scheduler: hurry(HURRY) });

type HurtOptions = Omit<ChaosOptions, 'share' | 'scheduler'> & { readonly protocol: Protocol };

async function hurt(program: Program, options: HurtOptions): Promise<Outcome> {
  const report = REPORTS[options.protocol];
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
const RUNS = PROGRAMS.flatMap(([name, program]) => PROTOCOLS.map((protocol) => [name, protocol, program] as const));

describe.concurrent.each(RUNS)('%s over %s with three of ten requests hurt', (_, protocol, program) => {
  it(
    'applies every operation once, in order, to the very same weights, also when it resumes after restarts',
    { timeout: LIMIT_MS },
    async ({ expect }) => {
      const report = REPORTS[protocol];
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
        expectSame(await hurt(program, { protocol, seed }), 1);
        const restartAfterSteps = LONG ? [3, 9] : [3];
        expectSame(
          await hurt(program, { protocol, seed: 100 + seed, restartAfterSteps }),
          1 + restartAfterSteps.length,
        );
      }
    },
  );
});

describe.concurrent.each(PROTOCOLS)('samples over %s with three of ten requests hurt', (protocol) => {
  it('are answered as on a quiet day, or fail with their reason', { timeout: LIMIT_MS }, async ({ expect }) => {
    const program = samples(SAMPLES);
    const calm = await quiet(program);
    for (const seed of SEEDS) {
      const outcome = await hurt(program, { protocol, seed });
      expect(Object.fromEntries(outcome.kept)).toStrictEqual(Object.fromEntries(calm.kept));
      const reasons = [...outcome.kept.values()].filter((result) => result.includes('vocabulary'));
      expect(reasons).toHaveLength(SAMPLES / 5);
      const report = REPORTS[protocol];
      report.add('samples answered', outcome.kept.size - reasons.length);
      report.add('samples failed with their reason', reasons.length);
    }
  });
});

describe.concurrent.each(PROTOCOLS)('an evaluation over %s with three of ten requests hurt', (protocol) => {
  it(
    'has every example in its file once, with the answers and scores of a quiet day, also when it resumes after a restart',
    { timeout: LIMIT_MS },
    async ({ expect }) => {
      const examples = LONG ? 60 : 16;
      const program = evaluationOf(examples);
      const calm = await quiet(program);
      expect(calm.kept.size).toBe(examples);
      for (const seed of SEEDS) {
        const restarted = { protocol, seed: 100 + seed, restartAfterSteps: [6], stepEndpoint: 'asample' };
        for (const options of [{ protocol, seed }, restarted]) {
          const outcome = await hurt(program, options);
          expect(outcome.harms.get('restart') ?? 0).toBe('restartAfterSteps' in options ? 1 : 0);
          expect(Object.fromEntries(outcome.kept)).toStrictEqual(Object.fromEntries(calm.kept));
          REPORTS[protocol].add('examples evaluated', outcome.kept.size);
        }
      }
    },
  );
});
