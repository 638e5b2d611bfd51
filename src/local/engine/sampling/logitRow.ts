/** The logits that predict a token, with log Σ exp of them: a token's logprob is its logit less the total. */
export interface LogitRow {
  readonly logits: Float32Array;
  readonly total: number;
}

/** The same row at a temperature. At 0, where one token has it all, the row as it is. */
export function scaledRow(row: LogitRow, temperature: number): LogitRow {
  if (temperature === 0 || temperature === 1) return row;
  const logits = row.logits.map((logit) => logit / temperature);
  const max = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const sum = logits.reduce((a, b) => a + Math.exp(b - max), 0);
  return { logits, total: max + Math.log(sum) };
}
