import type { PendingCall, PendingWork } from '../../client/session/pending.js';
import type { Calls, Load, OpenRequest } from '../state/changes.js';

/** Up to this many calls are listed one by one; the rest is summed up. */
const MOST = 50;

/**
 * What a client has to do, as a page is told: calls that the service has not accepted, and those it has accepted whose
 * requests are not open by the events. Samples of one sampling session are many and alike, and are told together.
 */
export function loadOf(
  { calls, budgets }: PendingWork,
  atMs: number,
  openRequest: (requestId: string) => OpenRequest | undefined,
): Load {
  const [unsent, accepted] = [new Gathered(), new Gathered()];
  let count = 0;
  for (const call of calls) {
    count++;
    if (call.requestId === undefined) {
      unsent.add(call);
      continue;
    }
    const request = openRequest(call.requestId);
    if (request === undefined) accepted.add(call);
    // A custom loss keeps its turn until its second pass is sent, which has another kind than the first.
    if (request?.requestType !== call.requestType) unsent.letBefore(call);
  }
  return {
    atMs,
    calls: count,
    unsent: unsent.toArray(),
    accepted: accepted.toArray(),
    ...(budgets === undefined ? {} : { budgets }),
  };
}

class Gathered {
  readonly #groups = new Map<string, { -readonly [key in keyof Calls]: Calls[key] }>();
  /** How many calls there are of each target. */
  readonly #before = new Map<string, number>();

  add(call: PendingCall): void {
    const { sinceMs, target = '' } = call;
    const requestType: string = call.requestType ?? '';
    const before = this.letBefore(call);
    const alone = requestType !== '' && requestType !== 'Sample' && this.#groups.size < MOST;
    const key = `${requestType} ${target}${alone ? ` ${before}` : ''}`;
    const group = this.#groups.get(key);
    if (group !== undefined) group.count++;
    else this.#groups.set(key, { requestType, target, count: 1, sinceMs, before });
  }

  /** Counts a call that is before all later ones of its target; the result is how many are before it. */
  letBefore({ target = '' }: PendingCall): number {
    const before = this.#before.get(target) ?? 0;
    this.#before.set(target, before + 1);
    return before;
  }

  toArray(): Calls[] {
    return [...this.#groups.values()];
  }
}
