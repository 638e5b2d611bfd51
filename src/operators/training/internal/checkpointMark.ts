import { concat, from, map, type ObservableInput } from 'rxjs';
import type { Saves } from '../Trainable.js';
import type { Checkpoint, Mark, MarkedBatch, MarkPoint } from '../trainingBatch.js';
import { saveNow } from '../shared/saveNow.js';

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
    const saved = saveNow(trainer, at, {
      kind: kinds.size === 1 ? first.kind : 'both',
      name: first.name,
      ...(ttlSeconds === Infinity ? {} : { ttlSeconds }),
    });
    const actions = kept ? [] : due.flatMap(({ afterwards }) => afterwards ?? []);
    return {
      adds: saved.pipe(map((checkpoint) => ({ checkpoint: { ...checkpoint, kept } }))),
      afterwards: ({ checkpoint }) => concat(...actions.map((action) => from(action(checkpoint!)))),
    };
  };
  plansOf.set(mark, plans);
  return mark;
}
