import { ModelInput, type Datum, type ForwardBackwardOutput, type TensorInput } from '../wire/index.js';

/** Small ids, which every vocabulary has. */
const TOKENS: readonly number[] = [40, 41, 42, 40, 43, 44, 40, 41, 42];
const INPUT: readonly number[] = TOKENS.slice(0, -1);
export const TARGETS: readonly number[] = TOKENS.slice(1);

export const datum = (inputs: Readonly<Record<string, TensorInput>> = { weights: TARGETS.map(() => 1) }): Datum => ({
  modelInput: ModelInput.fromInts([...INPUT]),
  lossFnInputs: { target_tokens: [...TARGETS], ...inputs },
});

export const rowOf = ({ lossFnOutputs }: ForwardBackwardOutput, name: string): readonly number[] =>
  Array.from(lossFnOutputs[0]?.[name]?.data ?? []);

/** The loss as the server tells it: a metric, or one number per token. */
export function lossOf(output: ForwardBackwardOutput): number | undefined {
  const told = output.metrics['loss:sum'];
  if (told !== undefined) return told;
  const rows = output.lossFnOutputs.map((record) => record['elementwise_loss']?.data);
  if (rows.some((row) => row === undefined)) return undefined;
  return rows.reduce((sum, row) => sum + Array.from(row!).reduce((a, b) => a + b, 0), 0);
}
