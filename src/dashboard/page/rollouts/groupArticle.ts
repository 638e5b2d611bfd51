import type { DashboardGroup, DashboardTry, PartKind } from '../../state/changes.js';
import { make } from '../dom.js';
import { number, shortName, whole } from '../format.js';
import { ageOf, meanReward } from './selectGroups.js';

const NAMES: Readonly<Record<PartKind, string>> = {
  prompt: 'prompt',
  sampled: 'sampled',
  tool: 'tool or environment',
  masked: 'sampled, not trained on',
};

/** One group: facts, what was asked, a button with its reward for each try, and below them the trajectory that was chosen. */
export function groupArticle(group: DashboardGroup, key: string): HTMLElement {
  const { run, step, order, tags, dropped, tries } = group;
  const mean = meanReward(group);
  const age = ageOf(group);
  const failed = tries.filter(({ error }) => error !== undefined).length;
  const facts = [
    `step ${whole(step + 1)}`,
    `task ${whole(order + 1)}`,
    shortName(run),
    ...(tags.length === 0 ? [] : [tags.join(', ')]),
    `mean reward ${number(mean)}`,
    ...(Number.isNaN(age) ? [] : [`weights ${age} ${age === 1 ? 'step' : 'steps'} old`]),
  ];
  const prompt = tries
    .flatMap(({ parts }) => parts)
    .find(({ kind }) => kind === 'prompt')
    ?.text.trim();
  const place = make('div');
  const buttons = tries.map((each) => button(each, mean));
  buttons.forEach((own, index) => {
    own.addEventListener('click', () => {
      const opens = own.getAttribute('aria-expanded') !== 'true';
      for (const other of buttons) other.setAttribute('aria-expanded', 'false');
      own.setAttribute('aria-expanded', String(opens));
      place.replaceChildren(...(opens ? [trajectory(tries[index]!)] : []));
    });
  });
  return make(
    'article',
    { 'data-key': key, 'data-order': String(order) },
    make(
      'header',
      {},
      ...facts.map((fact) => make('span', {}, fact)),
      ...(dropped === undefined ? [] : [make('span', { class: 'warn' }, `not trained on: ${dropped}`)]),
      ...(failed === 0 ? [] : [make('span', { class: 'bad' }, `${whole(failed)} failed`)]),
    ),
    ...(prompt === undefined ? [] : [make('p', { class: 'text task prompt', tabindex: '0' }, prompt)]),
    make('div', { class: 'tries', role: 'group', 'aria-label': `Rewards of task ${order + 1}` }, ...buttons),
    place,
  );
}

function button({ index, reward, error }: DashboardTry, mean: number): HTMLElement {
  const kind = reward === undefined ? 'failed' : reward > mean ? 'better' : reward < mean ? 'worse' : 'same';
  const label = index < 0 ? 'The whole group' : `Try ${index + 1}`;
  return make(
    'button',
    {
      type: 'button',
      class: kind,
      title: error ?? label,
      'aria-label': `${label}: ${error ?? `reward ${reward}`}`,
      'aria-expanded': 'false',
    },
    reward === undefined ? '✕' : number(reward),
  );
}

/** A trajectory as coloured turns. */
function trajectory({ index, reward, advantage, sampledAt, error, metrics = {}, parts }: DashboardTry): HTMLElement {
  const sampled = parts.reduce(
    (sum, { kind, length }) => (kind === 'sampled' || kind === 'masked' ? sum + length : sum),
    0,
  );
  const facts = [
    index < 0 ? 'the whole group' : `try ${index + 1}`,
    ...(reward === undefined ? [] : [`reward ${number(reward)}`]),
    ...(advantage === undefined ? [] : [`advantage ${number(advantage)}`]),
    ...(sampledAt === undefined ? [] : [`sampled after ${whole(sampledAt)} steps`]),
    ...(parts.length === 0 ? [] : [`${whole(sampled)} tokens sampled`]),
    ...Object.entries(metrics).map(([name, value]) => `${name} ${number(value)}`),
  ];
  return make(
    'div',
    { class: 'trajectory' },
    make('p', { class: 'facts' }, ...facts.map((fact) => make('span', {}, fact))),
    ...(error === undefined ? [] : [make('p', { class: 'bad' }, error)]),
    ...parts.map(({ kind, text, length }) =>
      make(
        'p',
        { class: `turn part-${kind}`, 'data-kind': kind, title: `${NAMES[kind]}, ${whole(length)} tokens` },
        text,
      ),
    ),
  );
}
