import { concat, forkJoin, from, map, type Observable, type ObservableInput } from 'rxjs';
import type { Saves } from '../Trainable.js';
import type { Checkpoint, Mark, MarkedBatch, MarkPoint } from '../trainingBatch.js';
import { missingMethod } from '../steps/missingMethod.js';

/** A checkpoint that is wanted, and when. */
export interface CheckpointPlan {
  readonly due: (at: MarkPoint) => boolean;
  readonly kind: 'state' | 'sampler' | 'both';
  readonly name: (steps: number) => string;
  /** Whether it is kept for good; others may expire or be removed. */
  readonly kept: (at: MarkPoint) => boolean;
  readonly ttlSeconds: number | undefined;
  /** Run once the step that brings a checkpoint that is not kept is out. */
  readonly afterwards: ((checkpoint: Checkpoint) => ObservableInput<unknown>) | undefined;
}

/** The plans of marks made here, so that those of one batch can be joined. */
const plansOf = new WeakMap<Mark<never>, readonly CheckpointPlan[]>();

/**
 * Adds a plan to a batch's marks. Several checkpoints wanted after one step are one: two saves under one name would
 * collide. Batches that share their marks share the one that takes their place, so that it is called once a step.
 */
export function planCheckpoints(plan: CheckpointPlan): <T>(batch: MarkedBatch<T>) => MarkedBatch<T & Saves> {
  const alone = checkpointMark([plan]);
  const joined = new WeakMap<Mark<never>, Mark<Saves>>();
  return <T>(batch: MarkedBatch<T>) => {
    const earlier = batch.marks.find((mark) => plansOf.has(mark));
    let mine = earlier === undefined ? alone : joined.get(earlier);
    if (mine === undefined) {
      mine = checkpointMark([...plansOf.get(earlier!)!, plan]);
      joined.set(earlier!, mine);
    }
    const marks: readonly Mark<T & Saves>[] = [...batch.marks.filter((mark) => mark !== earlier), mine];
    return { ...batch, marks };
  };
}

function checkpointMark(plans: readonly CheckpointPlan[]): Mark<Saves> {
  const mark: Mark<Saves> = (trainer, at) => {
    const due = plans.filter((plan) => plan.due(at));
    const [first] = due;
    if (first === undefined) return;
    const kinds = new Set(due.map(({ kind }) => kind));
    const kept = due.some((plan) => plan.kept(at));
    const ttlSeconds = kept ? Infinity : Math.max(...due.map((plan) => plan.ttlSeconds ?? Infinity));
    const ttl = ttlSeconds === Infinity ? {} : { ttlSeconds };
    const { steps, batches, scheduler } = at;
    const name = first.name(steps);
    const saved = save(trainer, at, kinds.size === 1 ? first.kind : 'both', name, ttl);
    const actions = kept ? [] : due.flatMap(({ afterwards }) => afterwards ?? []);
    return {
      adds: saved.pipe(
        map((found) => {
          const expires = ttlSeconds === Infinity ? {} : { expiresAtMs: scheduler.now() + ttlSeconds * 1000 };
          return { checkpoint: { name, steps, batches, ...found, kept, ...expires } };
        }),
      ),
      afterwards: ({ checkpoint }) => concat(...actions.map((action) => from(action(checkpoint!)))),
    };
  };
  plansOf.set(mark, plans);
  return mark;
}

/** Puts the saves in turn; each is started at once. */
function save(
  trainer: Saves,
  { start }: MarkPoint,
  kind: CheckpointPlan['kind'],
  name: string,
  ttl: { readonly ttlSeconds?: number },
): Observable<Pick<Checkpoint, 'statePath' | 'samplerPath'>> {
  const paths: Record<string, Observable<string>> = {};
  if (kind !== 'sampler') {
    if ((trainer.saveState as unknown) === undefined) throw missingMethod('saveState', 'checkpointEvery');
    paths['statePath'] = start(trainer.saveState(name, ttl)).pipe(map(({ path }) => path));
  }
  if (kind !== 'state') {
    if (trainer.saveWeightsForSampler === undefined) throw missingMethod('saveWeightsForSampler', 'checkpointEvery');
    paths['samplerPath'] = start(trainer.saveWeightsForSampler(name, ttl)).pipe(map(({ path }) => path));
  }
  return forkJoin(paths);
}
