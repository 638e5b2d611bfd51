import { setImmediate as turn } from 'node:timers/promises';
import { BehaviorSubject, filter, firstValueFrom } from 'rxjs';
import { LocalTinker, type LocalTinkerOptions, type SeenRequest, type SeenResponse } from '../../../src/local/index.js';

/** How many requests to an endpoint were accepted. */
export type Count = (endpoint: string) => number;

export interface SteppedService {
  readonly local: LocalTinker;
  /** From here on cycles start by hand, and requests are counted from 0. */
  readonly takeOver: () => void;
  /** The same, with cycles by hand from the next training pass on. */
  readonly atFirstPass: () => void;
  /** Resolves when enough has been accepted. */
  readonly until: (ready: (count: Count) => boolean) => Promise<void>;
  /**
   * Starts cycle after cycle, each when `ready` says that what belongs to it has been accepted, until the run is over. Gives its result.
   * What is submitted too late for its cycle keeps `ready` from being true, and the test from ending.
   */
  readonly cycles: <A>(run: Promise<A>, ready: (cycle: number, count: Count) => boolean) => Promise<A>;
}

/** A service whose clock the test steps: the number of cycles does not depend on how busy the machine is. */
export async function startStepped(options: LocalTinkerOptions = {}): Promise<SteppedService> {
  const counts = new BehaviorSubject<Readonly<Record<string, number>>>({});
  const onResponse = ({ request: { endpoint }, status }: SeenResponse) => {
    if (status === 200) counts.next({ ...counts.value, [endpoint]: (counts.value[endpoint] ?? 0) + 1 });
  };
  let waitsForPass = false;
  const onRequest = ({ endpoint }: SeenRequest) => {
    if (!waitsForPass || endpoint !== 'forward_backward') return;
    waitsForPass = false;
    local.controls.clockMs = Infinity;
  };
  const local = await LocalTinker.start({ ...options, onRequest, onResponse });
  const takeOver = () => {
    local.controls.clockMs = Infinity;
    counts.next({});
  };
  const until = async (ready: (count: Count) => boolean) => {
    await firstValueFrom(counts.pipe(filter((count) => ready((endpoint) => count[endpoint] ?? 0))));
  };
  return {
    local,
    takeOver,
    atFirstPass: () => {
      waitsForPass = true;
      counts.next({});
    },
    until,
    cycles: async (run, ready) => {
      let over = false;
      const end = () => (over = true);
      run.then(end, end);
      for (let cycle = 1; ; cycle++) {
        await Promise.race([run, until((count) => ready(cycle, count))]);
        if (over) return run;
        await local.controls.step();
        await turn();
      }
    },
  };
}
