import type { Change, DashboardGroup, DashboardTry, PartKind } from '../state/changes.js';

type GroupChange = Extract<Change, { readonly kind: 'group' }>;

const SHOWN_CHARACTERS = 4000;
const SHOWN_PARTS = 60;

/**
 * What the next rollouts of a run change in the state of a dashboard: a group for each task. They come as lines of `rollouts.jsonl`,
 * a line for each try; a group whose lines come in two parts is sent again, whole. Lines that are no rollouts are passed over.
 */
export function groupChanges(run: string): (records: readonly unknown[]) => GroupChange[] {
  let last: DashboardGroup | undefined;
  return (records) => {
    const changed: DashboardGroup[] = [];
    for (const record of records) {
      if (!isRecord(record) || !isWhole(record['order']) || !isWhole(record['iteration'])) continue;
      const { order, iteration: step, tags, dropped } = record;
      const goesOn = last?.order === order && last.step === step;
      const tries: readonly DashboardTry[] = [...(goesOn ? last!.tries : []), tryOf(record)];
      if (goesOn && changed.at(-1) === last) changed.pop();
      last = {
        ...{ run, step, order, tries },
        tags: Array.isArray(tags) ? tags.map(String) : [],
        ...(typeof dropped === 'string'
          ? { dropped }
          : goesOn && last!.dropped !== undefined
            ? { dropped: last!.dropped }
            : {}),
      };
      changed.push(last);
    }
    return changed.map((group) => ({ kind: 'group', group }));
  };
}

type Fields = Readonly<Record<string, unknown>>;
const isRecord = (value: unknown): value is Fields => typeof value === 'object' && value !== null;
const isWhole = (value: unknown): value is number => Number.isInteger(value);

function tryOf(record: Fields): DashboardTry {
  const { traj_idx: index, total_reward: reward, advantage, sampling_client_step: sampledAt, error, steps } = record;
  const metrics = isRecord(record['trajectory_metrics']) ? record['trajectory_metrics'] : {};
  const numbers = Object.entries(metrics).filter((entry): entry is [string, number] => Number.isFinite(entry[1]));
  const said = Array.isArray(steps) ? steps.filter(isRecord) : [];
  return {
    index: isWhole(index) ? index : 0,
    ...numberAs('reward', reward),
    ...numberAs('advantage', advantage),
    ...numberAs('sampledAt', sampledAt),
    ...(isRecord(error) ? { error: `${String(error['name'])}: ${String(error['message'])}` } : {}),
    ...(numbers.length === 0 ? {} : { metrics: Object.fromEntries(numbers) }),
    parts: said.slice(0, SHOWN_PARTS).flatMap(partsOf),
  };
}

const numberAs = (name: string, value: unknown): Record<string, number> =>
  typeof value === 'number' && Number.isFinite(value) ? { [name]: value } : {};

/** What the model was newly shown in a turn, and what it said. */
function partsOf(step: Fields, turn: number): DashboardTry['parts'][number][] {
  const shown = textOf(step, 'ob');
  const part = (kind: PartKind, side: 'ob' | 'ac', text: string) => ({
    kind,
    text: text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}…`,
    length: lengthOf(step, side),
  });
  return [
    ...(shown === '' ? [] : [part(turn === 0 ? 'prompt' : 'tool', 'ob', shown)]),
    part(step['masked'] === true ? 'masked' : 'sampled', 'ac', textOf(step, 'ac')),
  ];
}

/** As text if it was logged so, else the ids. */
function textOf(step: Fields, side: 'ob' | 'ac'): string {
  const { [`${side}_text`]: text, [`${side}_tokens`]: tokens } = step;
  if (typeof text === 'string') return text;
  return Array.isArray(tokens) ? tokens.join(' ') : '';
}

const lengthOf = (step: Fields, side: 'ob' | 'ac'): number => {
  const length = step[`${side}_len`];
  return typeof length === 'number' ? length : 0;
};
