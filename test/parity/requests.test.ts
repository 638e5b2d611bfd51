import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { futures } from './calls/futures.js';
import { models } from './calls/models.js';
import { rest } from './calls/rest.js';
import { sampling } from './calls/sampling.js';
import { session } from './calls/session.js';
import { training } from './calls/training.js';
import { expectSamePolls, expectSameRequests, expectSameResults, withoutKey } from './support/compare.js';
import { readFixture, scenarios } from './support/fixture.js';
import { Stage, type Play } from './support/stage.js';

const PLAYS: Readonly<Record<string, Play>> = { ...session, ...models, ...training, ...sampling, ...futures, ...rest };

/** Recordings that other tests use, or that hold what is the SDK's own business. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  heartbeat: 'beside.test.ts',
  telemetry: 'beside.test.ts',
  'model-input': 'beside.test.ts',
  'forward-backward-zstd': 'beside.test.ts: Node before 22.15 has no zstd',
  'api-key': 'beside.test.ts: the SDK sends it without its usual headers',
};

beforeEach(() => {
  for (const name of Object.keys(process.env)) {
    if (/^(TINKER|CLOUDFLARE)_/.test(name)) vi.stubEnv(name, undefined);
  }
});
afterEach(() => {
  vi.unstubAllEnvs();
});

it('plays every recorded scenario', () => {
  expect(scenarios().sort()).toStrictEqual([...Object.keys(PLAYS), ...Object.keys(ELSEWHERE)].sort());
});

it('carries an idempotency key wherever the SDK does', async () => {
  const keyless: string[] = [];
  for (const name of ['optim-step', 'retrieve-futures', 'rest', 'session-options', 'cancel']) {
    const fixture = readFixture(name);
    const stage = new Stage(fixture);
    await PLAYS[name]!(stage);
    keyless.push(...withoutKey(stage.replay.sent, fixture));
    await stage.close();
    vi.unstubAllEnvs();
  }
  expect([...new Set(keyless)]).toStrictEqual([]);
});

describe('sends what the Python SDK sends', () => {
  for (const [name, play] of Object.entries(PLAYS)) {
    it(name, async () => {
      const fixture = readFixture(name);
      if (name === 'copy-weights') vi.stubEnv('TINKER_PROJECT_ID', 'project-of-the-environment');
      const stage = new Stage(fixture);
      await play(stage);
      const sent = [...stage.replay.sent];
      await stage.close();
      expectSameRequests(sent, fixture);
      if (!name.startsWith('cancel')) expectSamePolls(sent, fixture);
      expectSameResults(stage.results, fixture);
    });
  }
});
