import { resolveBaseUrl } from '../../transport/baseUrl.js';
import type { Http } from '../http.js';
import type { Context } from '../context.js';
import { explain } from '../explain.js';
import { openService } from '../clients.js';
import { count } from '../output/format.js';
import { waitFor } from '../terminal/waitFor.js';
import { ok, warning, wrong, type Finding } from './Check.js';
import { healthProblem, isLocal, unreachable } from './healthProblem.js';

const PINGS = 5;
const TIMEOUT_MS = 10_000;
const SLOW_MS = 1000;
const SKEW_MS = 60_000;

/** The address, whether a server answers there, and how fast. */
export async function checkAddress(context: Context, http: Http): Promise<Finding[]> {
  const { TINKER_BASE_URL: environment } = process.env;
  let href: string;
  try {
    ({ href } = resolveBaseUrl(context.baseUrl, environment));
  } catch (error) {
    return [wrong('URL', (error as Error).message, 'Correct TINKER_BASE_URL or --base-url.')];
  }
  const origin = context.baseUrl !== undefined ? '--base-url' : environment ? 'TINKER_BASE_URL' : 'the hosted service';
  const url = ok('URL', `${href} (${origin})`);
  const times: number[] = [];
  let skewMs = 0;
  try {
    for (let ping = 0; ping < PINGS; ping++) {
      const begun = performance.now();
      const response = await http.fetch(`${href}/api/v1/healthz`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
      const text = await response.text();
      times.push(performance.now() - begun);
      skewMs = Date.parse(response.headers.get('date') ?? '') - context.now() || 0;
      const problem = healthProblem(response.status, text, href);
      if (problem !== undefined) return [url, problem];
    }
  } catch (error) {
    return [url, unreachable(error, href)];
  }
  const latency = times.slice(1).sort((a, b) => a - b)[Math.floor((PINGS - 1) / 2)]!;
  const skew = `${Math.round(skewMs / 1000)} s off the service's`;
  const text = `${latency.toFixed(0)} ms (first ${times[0]!.toFixed(0)} ms, with connecting)`;
  return [
    url,
    ok('Health', 'answers'),
    latency > SLOW_MS
      ? warning('Latency', text, 'Slow; steps are pipelined, so throughput suffers little.')
      : ok('Latency', text),
    ...(Math.abs(skewMs) > SKEW_MS ? [warning('Clock', skew, 'Set the clock: tokens and URLs expire by it.')] : []),
  ];
}

/** Whether the service accepts the key and this client's version, and how many models it has. */
export async function checkAccess(context: Context): Promise<Finding[]> {
  try {
    const service = await openService(context, { telemetry: false, timeoutMs: TIMEOUT_MS });
    const { supportedModels } = await waitFor(
      context,
      'asking the service',
      service.getServerCapabilities(),
      service.events$,
    );
    await service.close();
    const models =
      supportedModels.length === 0
        ? warning('Models', 'none', 'Your organization can use no models; ask its administrators.')
        : ok('Models', count(supportedModels.length, 'model'));
    return [
      ok('Access', 'key accepted'),
      ok('Protocol', 'version accepted; protobuf, or JSON if protobuf is not supported'),
      models,
    ];
  } catch (error) {
    const { message, details } = explain(error);
    const code = (error as { readonly code?: string }).code;
    const { href } = resolveBaseUrl(context.baseUrl, process.env['TINKER_BASE_URL']);
    const advice =
      code !== 'authentication'
        ? (details ?? 'See above.')
        : isLocal(href)
          ? 'The service on this machine has another key: use the one that tinker-rx local printed when it started.'
          : 'The service does not accept the key: create a new one in the Tinker console, then tinker-rx auth login.';
    return [wrong(code === 'unsupported_version' ? 'Protocol' : 'Access', message, advice)];
  }
}
