import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Dashboard, serveDashboard } from 'tinker-rx/dashboard';

const TOKEN = 'a-token-of-the-test';
let dashboard: Dashboard;
beforeAll(async () => {
  dashboard = await serveDashboard({}, { token: TOKEN, allowedHosts: ['box.example'] });
});
afterAll(() => dashboard.close());

/** The status of a request with headers that `fetch` does not let one set. */
const ask = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<number> =>
  new Promise((resolve, reject) => {
    const asked = request({ port: dashboard.port, host: '127.0.0.1', path, method, headers }, (response) => {
      resolve(response.statusCode!);
      response.destroy();
    });
    asked.on('error', reject);
    asked.end();
  });

describe('who may see a dashboard', () => {
  const page = `/?token=${TOKEN}`;
  const bearer = { authorization: `Bearer ${TOKEN}` };

  it.each<[string, string, Record<string, string>, number]>([
    ['has the token in the URL', page, {}, 200],
    ['has the token as a bearer', '/events', bearer, 200],
    ['has no token', '/', {}, 401],
    ['has no token for the events', '/events', {}, 401],
    ['has another token', '/?token=another-token-yet', {}, 401],
    ['asks for localhost', page, { host: 'localhost:1234' }, 200],
    ['asks for a name that is allowed', page, { host: 'box.example' }, 200],
    ['asks for a name that was made to point here', page, { host: 'evil.example' }, 421],
    ['asks for an address of another machine', page, { host: '10.0.0.1' }, 421],
    ['is a script of this page', '/events', { ...bearer, host: 'localhost:1', origin: 'http://localhost:1' }, 200],
    ['is a script of another page', '/events', { ...bearer, host: 'localhost:1', origin: 'http://evil.example' }, 403],
    [
      'is a script of a page on another port',
      '/events',
      { ...bearer, host: 'localhost:1', origin: 'http://localhost:2' },
      403,
    ],
    ['is a page without an origin', '/events', { ...bearer, origin: 'null' }, 403],
    ['is an image of another site', page, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }, 403],
    ['follows a link', page, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }, 200],
    ['asks for something else', `/etc/passwd?token=${TOKEN}`, {}, 404],
    ['asks for no path at all', `//?token=${TOKEN}`, {}, 400],
  ])('one who %s', async (_, path, headers, status) => {
    expect(await ask(path, headers)).toBe(status);
  });

  it('cannot be posted to', async () => {
    expect(await ask(page, {}, 'POST')).toBe(405);
  });

  it('listens on this machine only, unless told otherwise', () => {
    expect(new URL(dashboard.url).hostname).toBe('127.0.0.1');
  });

  it('lets the page run its own script and talk to its own server only', async () => {
    const { headers } = await fetch(dashboard.url);
    const policy = headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toMatch(/script-src 'sha256-[^' ]+'(;|$)/);
    expect(policy).not.toContain('unsafe');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
  });

  it('wants a token that cannot be guessed', async () => {
    await expect(serveDashboard({}, { token: 'short' })).rejects.toThrow(RangeError);
    const [one, two] = await Promise.all([serveDashboard(), serveDashboard()]);
    expect(new URL(one.url).searchParams.get('token')).not.toBe(new URL(two.url).searchParams.get('token'));
    await Promise.all([one.close(), two.close()]);
  });

  it('rejects when the port is taken', async () => {
    await expect(serveDashboard({}, { port: dashboard.port })).rejects.toThrow('EADDRINUSE');
  });
});
