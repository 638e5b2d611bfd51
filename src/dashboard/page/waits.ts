import type { BudgetUse, Calls, OpenRequest, Pause } from '../state/changes.js';
import type { EventState } from '../state/EventState.js';
import { bytes, duration, whole } from './format.js';

/** Something that waits, or several that wait for the same. */
export interface Wait {
  readonly what: string;
  readonly count: number;
  readonly why: string;
  /** Whether it stands still, and is not only being worked on. */
  readonly held: boolean;
  /** Since when the oldest of them waits. */
  readonly sinceMs: number;
  readonly bytes: number;
  readonly target: string;
  /** The service's ids, of those it has accepted. */
  readonly ids: readonly string[];
}
type Why = Pick<Wait, 'why' | 'held'>;

const QUEUE: Readonly<Record<string, string>> = {
  sent: 'the result',
  active: 'the result: it is being worked on',
  unknown: 'the result',
  paused_capacity: 'capacity: the service is short of it',
  paused_rate_limit: 'its turn: the limit of concurrent work is reached',
};
/** Up to this many of a kind are listed one by one. */
const APART = 3;

/** What all pending work waits for, and why: what is blocked first, then the oldest. */
export function waitsOf(events: EventState, nowMs: number): Wait[] {
  const pauses = events.pausesAt(nowMs);
  const { load } = events;
  // By request; or by sampling session, where one poll asks for all its samples.
  const polls = new Map(pauses.filter(isPoll).map((pause) => [pause.requestId ?? pause.target, pause]));
  const waits = [
    ...(load === undefined
      ? pauses.filter((pause) => !isPoll(pause)).map((pause) => unsentBy(pause, nowMs))
      : unsentCalls(events, pauses, nowMs)),
    ...[...events.requests.values()].map((request) =>
      accepted(request, polls.get(request.requestId) ?? polls.get(request.target), nowMs),
    ),
    ...(load?.accepted ?? []).flatMap((calls) => resubmitted(calls, pauses, nowMs)),
  ];
  return together(waits).sort((a, b) => Number(b.held) - Number(a.held) || a.sinceMs - b.sinceMs);
}

/** What a request waits for that the service has accepted. */
function accepted(request: OpenRequest, poll: Pause | undefined, nowMs: number): Wait {
  const { requestType: what, requestId, target, state, reason, sinceMs } = request;
  const paused = state.startsWith('paused');
  const queue = `${QUEUE[state] ?? state}${reason === undefined ? '' : ` (${reason})`}`;
  const why: Why =
    poll !== undefined && !paused
      ? { why: `the next time it is asked for, ${inTime(poll, nowMs)}`, held: true }
      : { why: queue, held: paused };
  return { what, count: 1, ...why, sinceMs, bytes: request.bytes, target, ids: [requestId] };
}

/** Calls whose request is not open: sent before anybody listened, or a sample whose promise was lost. */
function resubmitted(calls: Calls, pauses: readonly Pause[], nowMs: number): Wait[] {
  const lost = pauses.filter(
    (pause) => pause.kind === 'backoff' && pause.what === 'asample' && pause.target === calls.target,
  );
  const again = calls.requestType === 'Sample' ? lost.slice(0, calls.count) : [];
  return [
    ...again.map((pause) =>
      callsWait({ ...calls, count: 1 }, { why: `its next try ${inTime(pause, nowMs)}`, held: true }),
    ),
    ...(calls.count > again.length
      ? [callsWait({ ...calls, count: calls.count - again.length }, { why: QUEUE['sent']!, held: false })]
      : []),
  ];
}

/** What calls wait for that the service has not accepted. */
function unsentCalls({ load }: EventState, pauses: readonly Pause[], nowMs: number): Wait[] {
  const { unsent, budgets } = load!;
  const billing = pauses.find(({ kind }) => kind === 'billing');
  const ask = (calls: Calls): Why => {
    const { requestType, target, before } = calls;
    if (requestType !== 'Sample' && target !== '' && before > 0) {
      return {
        why: `its turn: ${before === 1 ? 'one call' : `${whole(before)} calls`} of this model before it`,
        held: false,
      };
    }
    const backoff = backoffOf(calls, pauses);
    if (backoff !== undefined) return { why: `its next try ${inTime(backoff, nowMs)}`, held: true };
    if (billing !== undefined) return { why: `billing: ${billing.why}`, held: true };
    const room = budgets !== undefined && /Forward/.test(requestType) ? budgets.trainingBytes : undefined;
    if (room !== undefined && room.waiting > 0) return { why: noRoom(room, 'training data'), held: true };
    return { why: requestType === '' ? 'an answer' : 'the service to accept it', held: false };
  };
  const samples = unsent.filter(({ requestType }) => requestType === 'Sample');
  const others = unsent.filter(({ requestType }) => requestType !== 'Sample');
  return [
    ...others.map((calls) => callsWait(calls, ask(calls))),
    ...unsentSamples(samples, budgets, pauses, billing, ask, nowMs),
  ];
}

/** All samples share slots and bytes, so how many wait for which is known for all of them together. */
function unsentSamples(
  samples: readonly Calls[],
  budgets: Readonly<Record<string, BudgetUse>> | undefined,
  pauses: readonly Pause[],
  billing: Pause | undefined,
  ask: (calls: Calls) => Why,
  nowMs: number,
): Wait[] {
  const all = samples.reduce<Calls | undefined>(
    (sum, calls) =>
      sum === undefined
        ? calls
        : {
            ...sum,
            count: sum.count + calls.count,
            sinceMs: Math.min(sum.sinceMs, calls.sinceMs),
            target: `${samples.length} samplers`,
          },
    undefined,
  );
  if (all === undefined) return [];
  const pause = pauses.findLast(({ kind }) => kind === 'sampling');
  if (pause !== undefined) {
    return [callsWait(all, { why: `the end of the pause ${inTime(pause, nowMs)}`, held: true })];
  }
  if (billing !== undefined || budgets === undefined) return [callsWait(all, ask(all))];
  const { sampleSlots, sampleBytes } = budgets as Record<'sampleSlots' | 'sampleBytes', BudgetUse>;
  const bytesLine = Math.min(all.count, sampleBytes.waiting);
  const slotsLine = Math.min(all.count - bytesLine, sampleSlots.waiting);
  const sending = Math.min(all.count - bytesLine - slotsLine, Math.max(0, sampleSlots.inUse - bytesLine));
  // Each submission that backs off says so; which of them it is nobody needs to know.
  const again = pauses.filter(
    ({ kind, what, target }) => kind === 'backoff' && what === 'asample' && target === undefined,
  );
  const tries = again
    .slice(0, sending)
    .map((pause) => [1, { why: `its next try ${inTime(pause, nowMs)}`, held: true }] as const);
  const groups: readonly (readonly [count: number, why: Why])[] = [
    ...tries,
    [sending - tries.length, { why: 'the service to accept it', held: false }],
    [bytesLine, { why: noRoom(sampleBytes, 'prompts'), held: true }],
    [
      slotsLine,
      { why: `its turn to be sent: ${whole(sampleSlots.size)} at once are the limit, and all are taken`, held: false },
    ],
    [all.count - bytesLine - slotsLine - sending, { why: 'a sample of its client to finish first', held: false }],
  ];
  return groups.filter(([count]) => count > 0).map(([count, why]) => callsWait({ ...all, count }, why));
}

/** Whether it holds up the question for a result, and not what is to be sent. */
const isPoll = ({ what, requestId }: Pause): boolean => requestId !== undefined || what === 'retrieve_futures';

/** The backoff that holds up a call, where one does. Of one model, only the first call is being sent. */
function backoffOf({ requestType, target }: Calls, pauses: readonly Pause[]): Pause | undefined {
  const backoffs = pauses.filter((pause) => pause.kind === 'backoff' && !isPoll(pause));
  return backoffs.findLast((pause) =>
    pause.requestType === undefined
      ? // Requests without a kind serve others: they open a session or fetch a token.
        requestType === '' || requestType === 'CreateModel'
      : pause.requestType === requestType && (target === '' || pause.target === target),
  );
}

/** What a pause holds up, if nobody can be asked for the calls themselves. */
function unsentBy(pause: Pause, nowMs: number): Wait {
  const { kind, what, requestType, target = '', why, sinceMs } = pause;
  const [work, waits] = {
    sampling: ['Sample', `the end of the pause ${inTime(pause, nowMs)}`],
    backoff: [requestType ?? what, `its next try ${inTime(pause, nowMs)}`],
    billing: ['Everything', `billing: ${why}`],
  }[kind] as [string, string];
  return { what: work, count: 1, why: waits, held: true, sinceMs, bytes: 0, target, ids: [] };
}

const callsWait = ({ requestType, target, count, sinceMs }: Calls, why: Why): Wait => ({
  what: requestType === '' ? 'Question' : requestType,
  count,
  ...why,
  sinceMs,
  bytes: 0,
  target,
  ids: [],
});

const inTime = ({ untilMs = 0, why, attempt }: Pause, nowMs: number): string =>
  `in ${duration(untilMs - nowMs)}: ${why}${attempt === undefined || attempt < 2 ? '' : ` (failed ${attempt} times)`}`;

const noRoom = ({ inUse, size }: BudgetUse, what: string): string =>
  `room in the budget: ${bytes(inUse)} of ${bytes(size)} of ${what} are being sent`;

/** Waits that say the same, as one; a few are left apart. */
function together(waits: readonly Wait[]): Wait[] {
  const groups = new Map<string, Wait[]>();
  for (const wait of waits) {
    // A countdown that differs by a moment is the same reason.
    const why = wait.held ? wait.why.replace(/ in [\d.]+ (s|min)/, '') : wait.why;
    const key = `${wait.what} ${wait.target} ${wait.held} ${why}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [wait]);
    else group.push(wait);
  }
  return [...groups.values()].flatMap((group) =>
    group.length <= APART
      ? group
      : [
          {
            ...group[0]!,
            count: group.reduce((sum, { count }) => sum + count, 0),
            sinceMs: group.reduce((least, { sinceMs }) => Math.min(least, sinceMs), Infinity),
            bytes: group.reduce((sum, each) => sum + each.bytes, 0),
            ids: group.flatMap(({ ids }) => ids),
          },
        ],
  );
}
