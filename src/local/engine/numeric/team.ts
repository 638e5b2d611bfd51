import type { Lane } from './lane.js';
import { OP_NAMES, runOp, type OpName } from './ops/index.js';
import type { WasmMemory } from './wasm/runtime.js';

/** The memory that the threads of an engine share, and where one tells the others what to do. */
export interface TeamSetup {
  readonly memory: WasmMemory;
  readonly control: Int32Array;
  readonly args: Float64Array;
  readonly threads: number;
}

/** Places in the control array. */
const [JOB, NEXT, DONE, FAILED, OP, COUNT, GRAIN, FLOATS, ARGUMENTS] = [0, 1, 2, 3, 4, 5, 6, 7, 8] as const;
/** The first two arguments are of the team: where scratch memory is, and how much of it each thread has. */
const OWN = 2;
const MAX_ARGUMENTS = 24;
/** Looks at a number in shared memory before a thread goes to sleep: some 50 µs, longer than the leader usually needs between two ops. */
const SPINS = 20_000;
/** Shares of each thread: enough that none waits long for another at the end. */
const SHARES = 32;

export function createTeam(memory: WasmMemory, threads: number): TeamSetup {
  const control = new Int32Array(new SharedArrayBuffer(4 * (ARGUMENTS + 1)));
  const args = new Float64Array(new SharedArrayBuffer(8 * (OWN + MAX_ARGUMENTS)));
  return { memory, control, args, threads };
}

/** Returns once the number at that place is no longer `value`. */
function waitWhile(control: Int32Array, place: number, value: number): void {
  for (let spin = 0; spin < SPINS; spin++) if (Atomics.load(control, place) !== value) return;
  while (Atomics.load(control, place) === value) Atomics.wait(control, place, value);
}

/** Takes shares until none is left. */
function takeShares({ control, args }: TeamSetup, lane: Lane, thread: number): void {
  const [count, grain] = [control[COUNT]!, control[GRAIN]!];
  const name = OP_NAMES[control[OP]!]!;
  const given = Array.from(args.subarray(OWN, OWN + control[ARGUMENTS]!));
  const scratch = args[0]! + thread * args[1]!;
  for (;;) {
    const first = Atomics.add(control, NEXT, grain);
    if (first >= count) return;
    runOp(name, lane, first, Math.min(first + grain, count), scratch, given);
  }
}

/** The leader's part: hands an op to all threads and returns when it is done. */
export function lead(
  team: TeamSetup,
  lane: Lane,
  op: OpName,
  count: number,
  scratch: number,
  scratchEach: number,
  given: readonly number[],
): void {
  const { control, args, threads } = team;
  args.set([scratch, scratchEach, ...given]);
  control[OP] = OP_NAMES.indexOf(op);
  control[COUNT] = count;
  control[GRAIN] = Math.ceil(count / (SHARES * threads));
  control[ARGUMENTS] = given.length;
  control[FLOATS] = lane.floats.length;
  control[NEXT] = 0;
  control[DONE] = 0;
  Atomics.add(control, JOB, 1);
  Atomics.notify(control, JOB);
  try {
    takeShares(team, lane, 0);
  } finally {
    for (let done = 0; done < threads - 1; done = Atomics.load(control, DONE)) waitWhile(control, DONE, done);
  }
  if (control[FAILED] === 1) throw new Error(`a thread of the engine failed in ${op}`);
}

/** The part of every other thread: takes its shares of each op, forever. */
export function follow(team: TeamSetup, lane: Lane, thread: number): never {
  const { control } = team;
  let job = 0;
  for (;;) {
    waitWhile(control, JOB, job);
    job = (job + 1) | 0;
    try {
      lane.refresh(control[FLOATS]!);
      takeShares(team, lane, thread);
    } catch {
      control[FAILED] = 1;
    }
    Atomics.add(control, DONE, 1);
    Atomics.notify(control, DONE);
  }
}
