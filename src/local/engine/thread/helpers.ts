import { once } from 'node:events';
import { parentPort, Worker } from 'node:worker_threads';
import { Lane } from '../numeric/lane.js';
import { follow, type TeamSetup } from '../numeric/team.js';

/** What a helper is started with. */
export interface HelperSetup {
  readonly team: TeamSetup;
  readonly thread: number;
}

/** Starts the further threads of a team from the module of this one; resolves when all are ready. They end with this thread. */
export async function startHelpers(team: TeamSetup, module: URL): Promise<void> {
  const ready = Array.from({ length: team.threads - 1 }, (_, index) => {
    const workerData: HelperSetup = { team, thread: index + 1 };
    const worker = new Worker(module, { workerData, name: `tinker-rx engine ${index + 2}`, execArgv: [] });
    worker.unref();
    return once(worker, 'message');
  });
  await Promise.all(ready);
}

/** The whole life of a helper: its shares of what the leader does. */
export function help({ team, thread }: HelperSetup): never {
  const lane = new Lane(team.memory);
  parentPort?.postMessage('ready');
  return follow(team, lane, thread);
}
