import { asyncScheduler } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { AuthenticationError } from 'tinker-rx';
import { after, dropped, json, refusal, type Reply } from 'tinker-rx/testing';
import type { FakeRequest } from 'tinker-rx/testing';
import { gaps, stage, times } from './stage.js';

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
/** A token that expires at a second of the virtual clock. */
const jwt = (exp: number, name = 'a'): string => `${part({ alg: 'none' })}.${part({ exp, sub: name })}.sig`;
const granted = (exp: number, name?: string): Reply => json({ jwt: jwt(exp, name) });
const keyOf = ({ headers }: FakeRequest): string => headers['x-api-key']!;
const withJwt = (...exchanges: Reply[]) =>
  stage({ config: { pjwtAuthEnabled: true }, script: { 'auth/token': exchanges } });

describe('a service that works with JWTs', () => {
  it('is asked for one with the key, and gets it with everything from then on', () => {
    const on = withJwt(granted(3600));
    on.trainer();
    expect(on.fake.requests.map((request) => [request.path, keyOf(request)]).slice(0, 4)).toEqual([
      ['client/config', 'tml-fake'],
      ['auth/token', 'tml-fake'],
      ['client/dynamic_config', jwt(3600)],
      ['create_session', jwt(3600)],
    ]);
  });

  it('is asked for a new one five minutes before the old one expires', () => {
    const on = withJwt(granted(3600, 'a'), granted(7200, 'b'), granted(10_800, 'c'));
    const model = on.trainer();
    on.clock.advanceTo(3_300_000);
    on.clock.resolve(model.optimStep());
    on.clock.advanceTo(6_900_000);
    expect(times(on.fake.to('auth/token'))).toEqual([0, 3_300_000, 6_900_000]);
    expect(on.fake.to('optim_step').map(keyOf)).toEqual([jwt(7200, 'b')]);
  });

  it('is asked on demand when a minute or less is left', () => {
    // Five minutes before 1000 s the refresh fails, and so does each try after that.
    const on = withJwt(granted(1000, 'a'), ...Array<Reply>(4).fill(refusal(403)), granted(5000, 'b'));
    const model = on.trainer();
    on.clock.advanceTo(939_000);
    on.clock.resolve(model.optimStep());
    // At 940 s the heartbeat is the first to find a minute left.
    on.clock.advanceTo(941_000);
    on.clock.resolve(model.optimStep());
    expect(times(on.fake.to('auth/token'))).toEqual([0, 700_000, 770_000, 840_000, 910_000, 940_000]);
    expect(on.fake.to('optim_step').map(keyOf)).toEqual([jwt(1000, 'a'), jwt(5000, 'b')]);
  });

  it('is asked once by many requests at a time', () => {
    const on = stage({
      config: { pjwtAuthEnabled: true },
      script: { 'auth/token': () => after(2000, json({ jwt: jwt(3600) }), on.clock) },
    });
    const both = [on.service.getServerCapabilities(), on.service.createSamplingClient({ baseModel: 'any' })];
    for (const one of both) on.clock.resolve<unknown>(one);
    expect(times(on.fake.to('auth/token'))).toEqual([0]);
    expect(times(on.fake.to('get_server_capabilities'))).toEqual([2000]);
  });

  it('keeps being used with the token at hand when a refresh fails', () => {
    const on = withJwt(granted(400, 'a'), ...Array<Reply>(20).fill(refusal(403)));
    const model = on.trainer();
    on.clock.advanceTo(350_000);
    on.clock.resolve(model.optimStep());
    expect(on.fake.to('optim_step').map(keyOf)).toEqual([jwt(400, 'a')]);
  });

  it('waits a minute after a failed refresh before it tries again', () => {
    const on = withJwt(granted(3600, 'a'), refusal(403), refusal(403), granted(7200, 'b'));
    on.trainer();
    on.clock.advanceTo(3_590_000);
    const tries = on.fake.to('auth/token').slice(1);
    expect(tries).toHaveLength(3);
    for (const gap of gaps(tries)) expect(gap).toBeGreaterThanOrEqual(60_000);
  });

  it('is not waited for while the token at hand is good', () => {
    let down = false;
    const on = stage({
      config: { pjwtAuthEnabled: true },
      script: { 'auth/token': () => (down ? refusal(503) : json({ jwt: jwt(on.clock.now() / 1000 + 400, 'a') })) },
    });
    const model = on.trainer();
    down = true;
    on.clock.advanceTo(350_000);
    on.clock.resolve(model.optimStep());
    expect(on.fake.to('optim_step').map((request) => [request.atMs, keyOf(request)])).toEqual([
      [350_000, jwt(400, 'a')],
    ]);
    // Once it is not, there is nothing to send before there is a new one.
    on.clock.advanceTo(401_000);
    const late = model.optimStep();
    on.clock.advanceTo(410_000);
    down = false;
    on.clock.resolve(late);
    expect(on.fake.to('optim_step')[1]!.atMs).toBeGreaterThan(410_000);
  });

  it('gives the user the error of the first exchange as it is', () => {
    const on = withJwt(refusal(401, 'unknown key'), granted(3600));
    const error = on.clock.reject(on.service.getServerCapabilities());
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error).toMatchObject({ message: 'POST /api/v1/auth/token: 401 unknown key' });
    on.clock.resolve(on.service.getServerCapabilities());
  });

  it('gets the new token with each try, also of a request that was first sent with the old one', () => {
    const on = stage({
      config: { pjwtAuthEnabled: true },
      script: {
        'auth/token': [granted(360, 'a'), granted(4000, 'b')],
        optim_step: Array<Reply>(5).fill(dropped()),
      },
    });
    const model = on.trainer();
    on.clock.advanceTo(50_000);
    on.clock.resolve(model.optimStep());
    const tries = on.fake.to('optim_step');
    expect(times(tries)).toEqual([50_000, 51_000, 53_000, 57_000, 65_000, 81_000]);
    expect(tries.map(keyOf)).toEqual([...Array<string>(4).fill(jwt(360, 'a')), jwt(4000, 'b'), jwt(4000, 'b')]);
  });

  it('is not asked any more once the client is closed', () => {
    const on = withJwt(granted(3600));
    on.trainer();
    on.clock.resolve(on.service.close());
    on.clock.advanceTo(10_000_000);
    expect(on.fake.to('auth/token')).toHaveLength(1);
  });

  it('is not asked again and again for a token that outlives the longest timer', () => {
    vi.useFakeTimers({ now: 0 });
    try {
      const on = stage(
        { config: { pjwtAuthEnabled: true }, script: { 'auth/token': [granted(60 * 86_400), granted(120 * 86_400)] } },
        { scheduler: asyncScheduler },
      );
      on.service.getServerCapabilities();
      vi.advanceTimersByTime(59 * 86_400_000);
      expect(on.fake.to('auth/token')).toHaveLength(1);
      vi.advanceTimersByTime(86_400_000);
      expect(on.fake.to('auth/token')).toHaveLength(2);
    } finally {
      vi.useRealTimers();
    }
  });

  it('goes by the lifetime that the token names, not by a clock of this machine that is wrong', () => {
    // Ten minutes behind, and two hours ahead: the token lives an hour by its own times.
    for (const offSeconds of [-600, 7200]) {
      let issued = 0;
      const on = stage({
        config: { pjwtAuthEnabled: true },
        script: {
          'auth/token': () => {
            const now = on.clock.now() / 1000 - offSeconds;
            return json({ jwt: `${part({ alg: 'none' })}.${part({ iat: now, exp: now + 3600, sub: issued++ })}.sig` });
          },
        },
      });
      on.trainer();
      on.clock.advanceTo(3 * 3_600_000);
      expect(times(on.fake.to('auth/token'))).toEqual([0, 3_300_000, 6_600_000, 9_900_000]);
    }
  });

  it('is asked for a new one, once, when it refuses the one at hand, and the call goes on', () => {
    const on = stage({
      config: { pjwtAuthEnabled: true },
      script: {
        'auth/token': [granted(36_000, 'a'), granted(36_000, 'b'), granted(36_000, 'c')],
        optim_step: (request) => (keyOf(request) === jwt(36_000, 'a') ? refusal(401, 'expired') : undefined),
        get_info: refusal(401, 'never'),
      },
    });
    const model = on.trainer();
    on.clock.resolve(model.optimStep());
    expect(on.fake.to('optim_step').map(keyOf)).toEqual([jwt(36_000, 'a'), jwt(36_000, 'b')]);
    expect(new Set(on.fake.to('optim_step').map(({ headers }) => headers['x-idempotency-key'])).size).toBe(1);
    expect(on.clock.reject(model.getInfo())).toBeInstanceOf(AuthenticationError);
    expect(on.fake.to('get_info').map(keyOf)).toEqual([jwt(36_000, 'b'), jwt(36_000, 'c')]);
  });
});
