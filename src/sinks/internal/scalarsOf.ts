import type { Step } from '../../operators/training/step.js';

/** What a chart can show of a step, by name. What stands at the step itself comes first: a metric of the same name does not replace it. */
export function scalarsOf(step: Step): ReadonlyMap<string, number> {
  const { index: _, metrics, ...own } = step;
  const numbers = Object.entries(own).filter((entry): entry is [string, number] => typeof entry[1] === 'number');
  const scalars = new Map(numbers);
  for (const [name, value] of Object.entries(metrics)) if (!scalars.has(name)) scalars.set(name, value);
  return scalars;
}

/** Results of evaluations that came with a step, each of the step whose weights were evaluated. */
export const evaluationsOf = ({
  evaluations = [],
}: Step): readonly (readonly [number, ReadonlyMap<string, number>])[] =>
  evaluations.map(({ index, metrics }) => [
    index,
    new Map(Object.entries(metrics).map(([name, value]) => [`evaluation/${name}`, value])),
  ]);
