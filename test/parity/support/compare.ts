import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import type { Exchange, Json, RecordedBody, RecordedRequest, SdkFixture } from './fixture.js';
import { canonical, requestJson } from './protoMessage.js';
import type { Sent } from './replay.js';
import { API_KEY, BASE_URL, WEIGHTS_TOKEN, type Result } from './stage.js';

const HEADERS = ['accept', 'content-type', 'content-encoding', 'x-api-key', 'x-idempotency-key'];
const HEADER_PREFIXES = ['x-tinker-', 'x-sdk-', 'cf-access-', 'x-recorded-'];
/** Fetched once for as long as it holds, by the SDK once a holder: compared without their number and place. */
const SETUP = new Set(['client/config', 'client/dynamic_config', 'auth/token']);
/** Sent on the side, compared in scenarios of their own. */
const BESIDE = new Set(['session_heartbeat', 'telemetry']);

const named = (text: string): string =>
  text
    .replaceAll(BASE_URL, '<base url>')
    .replaceAll(WEIGHTS_TOKEN, '<weights token>')
    .replaceAll(API_KEY, '<api key>')
    .replace(/^eyJ[\w-]+\.[\w-]+\.\w+$/, '<jwt>');

function namedValues(value: Json, key = ''): Json {
  if (typeof value === 'string') return named(value);
  if (Array.isArray(value)) {
    const items = value.map((item: Json) => namedValues(item));
    return key === 'tags' ? [...items].sort() : items;
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value as Record<string, Json>).map(([name, item]) => [name, namedValues(item, name)]),
  );
}

/** A request of ours in the form of the fixtures. */
export function toRecorded({ request, path, query }: Sent): RecordedRequest {
  const headers = Object.entries(request.headers).flatMap(([name, value]): [string, string][] => {
    if (name === 'x-idempotency-key') return [[name, '<key>']];
    if (name === 'x-tinker-create-promise-roundtrip-time') return [[name, '<seconds>']];
    const kept = HEADERS.includes(name) || HEADER_PREFIXES.some((prefix) => name.startsWith(prefix));
    return kept ? [[name, named(value)]] : [];
  });
  return {
    method: request.method,
    path: named(path),
    ...(query.size > 0 ? { query: Object.fromEntries([...query].map(([name, value]) => [name, named(value)])) } : {}),
    headers: Object.fromEntries(headers.sort(([a], [b]) => (a < b ? -1 : 1))),
    ...(request.body === undefined || request.body.length === 0 ? {} : { body: toBody(request.body) }),
  };
}

function toBody(body: string | Uint8Array): RecordedBody {
  if (typeof body === 'string') return { json: namedValues(JSON.parse(body) as Json) };
  return { protobuf: '', decoded: requestJson(body) };
}

/** A single stop string goes out as a list of one: some servers refuse the bare string, and both say the same. */
function withStopList(body: Json): Json {
  const params = (body as { sampling_params?: { stop?: Json } } | null)?.sampling_params;
  if (typeof params?.stop !== 'string') return body;
  return { ...(body as Record<string, Json>), sampling_params: { ...params, stop: [params.stop] } };
}

/** The recorded body with what we can compare: of a long protobuf body the digest. */
function comparable(body: RecordedBody | undefined, other: RecordedBody | undefined): Json {
  if (body === undefined) return null;
  if ('json' in body) return withStopList(body.json);
  const isLong = 'sha256' in body || (other !== undefined && 'sha256' in other);
  if (!isLong) return body.decoded;
  if ('sha256' in body) return body.sha256;
  return createHash('sha256').update(canonical(body.decoded)).digest('hex');
}

/** Null and absent say the same to a server; the SDK writes null in the few bodies it builds by hand. */
const withoutNulls = (value: Json): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(
        Object.entries(value)
          .filter(([, item]) => item !== null)
          .map(([key, item]) => [key, withoutNulls(item)]),
      )
    : value;

/** Compared on its own: see {@link withoutKey}. */
export function withoutIdempotency<R extends RecordedRequest>(request: R): R {
  const { 'x-idempotency-key': _key, ...headers } = request.headers;
  return { ...request, headers };
}

/** Paths to which we send without an idempotency key and the SDK with one. */
export function withoutKey(sent: readonly Sent[], fixture: SdkFixture): string[] {
  const exchanges = [...fixture.exchanges, ...Object.values(fixture.polls).flat()];
  const keyed = new Set(
    exchanges.flatMap(({ request: { method, path, headers } }) =>
      'x-idempotency-key' in headers ? [`${method} ${path}`] : [],
    ),
  );
  const ours = sent.filter(({ request }) => !('x-idempotency-key' in request.headers)).map(toRecorded);
  return [...new Set(ours.map(({ method, path }) => `${method} ${path}`).filter((call) => keyed.has(call)))];
}

function expectSame(ours: RecordedRequest, theirs: RecordedRequest, where: string): void {
  const { body: ourBody, ...ourRest } = withoutIdempotency(ours);
  const { body: theirBody, ...theirRest } = withoutIdempotency(theirs);
  expect(ourRest, where).toStrictEqual(theirRest);
  const isTtl = theirs.path.endsWith('/ttl');
  const meaning = (value: Json): Json => (isTtl ? value : withoutNulls(value));
  expect(meaning(comparable(ourBody, theirBody)), where).toStrictEqual(meaning(comparable(theirBody, ourBody)));
}

function sortRacing(requests: RecordedRequest[], path: string): RecordedRequest[] {
  const at = requests.flatMap((request, index) => (request.path === path ? [index] : []));
  const racing = at.map((index) => requests[index]!);
  // Of chunks the one that was sent last stays last.
  const last = path === 'forward_backward' ? racing.splice(-1) : [];
  const number = ({ body }: RecordedRequest): string => {
    const value = (body !== undefined && 'json' in body ? body.json : body?.decoded) as Readonly<
      Record<string, string>
    >;
    const { sampling_session_id: sampler, model_id: model, seq_id: seqId } = value;
    return `${sampler ?? model} ${String(seqId).padStart(12, '0')}`;
  };
  racing.sort((a, b) => (number(a) < number(b) ? -1 : 1));
  const result = [...requests];
  [...racing, ...last].forEach((request, index) => (result[at[index]!] = request));
  return result;
}

const title = (request: RecordedRequest, index: number): string =>
  `request ${index}: ${request.method} ${request.path}`;

/** Holds everything we sent against the recording: order, method, path, query, headers, body. */
export function expectSameRequests(sent: readonly Sent[], fixture: SdkFixture): void {
  let ours = sent.map(toRecorded).filter(({ path }) => path !== 'retrieve_future' && !BESIDE.has(path));
  const theirs = fixture.exchanges.map(({ request }) => request).filter(({ path }) => !BESIDE.has(path));
  for (const path of fixture.racing ?? []) ours = sortRacing(ours, path);
  const work = (requests: readonly RecordedRequest[]) => requests.filter(({ path }) => !SETUP.has(path));
  expect(work(ours).map(title)).toStrictEqual(work(theirs).map(title));
  work(ours).forEach((request, index) => expectSame(request, work(theirs)[index]!, title(request, index)));
  for (const path of SETUP) {
    const recorded = theirs.filter((candidate) => candidate.path === path).map(withoutIdempotency);
    for (const request of ours.filter((candidate) => candidate.path === path).map(withoutIdempotency)) {
      expect(recorded, `setup: ${path}`).toContainEqual(request);
    }
  }
}

/** Holds the polls of each promise against the recording, one by one. */
export function expectSamePolls(sent: readonly Sent[], fixture: SdkFixture): void {
  const ours = new Map<string, RecordedRequest[]>();
  for (const request of sent.filter(({ path }) => path === 'retrieve_future').map(toRecorded)) {
    const { json } = request.body as { json: { request_id: string } };
    ours.set(json.request_id, [...(ours.get(json.request_id) ?? []), request]);
  }
  expect([...ours.keys()].sort()).toStrictEqual(Object.keys(fixture.polls).sort());
  for (const [requestId, polls] of Object.entries<readonly Exchange[]>(fixture.polls)) {
    const requests = ours.get(requestId) ?? [];
    expect(requests.length, `polls of ${requestId}`).toBe(polls.length);
    requests.forEach((request, index) => expectSame(request, polls[index]!.request, `poll ${index} of ${requestId}`));
  }
}

/** Answers repeat which call they belong to in `type`, ours add links for people. */
function essence(value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => key !== 'type' && key !== 'console_url'));
}

/** Times are recorded as placeholders: ours are read as such where there is any time at all. */
function withPlaceholders(ours: Json, theirs: Json): Json {
  if (theirs === '<timestamp>') return typeof ours === 'string' && !Number.isNaN(Date.parse(ours)) ? theirs : ours;
  if (Array.isArray(ours) && Array.isArray(theirs))
    return (ours as Json[]).map((value, index) => withPlaceholders(value, (theirs as Json[])[index] ?? null));
  if (typeof ours !== 'object' || ours === null || typeof theirs !== 'object' || theirs === null) return ours;
  const known = theirs as Record<string, Json>;
  return Object.fromEntries(
    Object.entries(ours).map(([key, value]) => [key, withPlaceholders(value, known[key] ?? null)]),
  );
}

/** Holds what our calls gave against what the SDK's gave; where the SDK failed, ours must fail. */
export function expectSameResults(results: readonly Result[], fixture: SdkFixture): void {
  expect(results.map(({ call }) => call)).toStrictEqual(fixture.results.map(({ call }) => call));
  fixture.results.forEach(({ call, value }, index) => {
    const ours = results[index]!.value;
    const failed = typeof value === 'object' && value !== null && 'error' in value && 'message' in value;
    if (failed) expect(ours, call).toBeInstanceOf(Error);
    else {
      if (ours instanceof Error) throw ours;
      expect(withPlaceholders(essence(ours as Json), value), call).toStrictEqual(essence(value));
    }
  });
}
