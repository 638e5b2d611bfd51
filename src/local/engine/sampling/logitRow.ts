/** The logits that predict a token, with log Σ exp of them: a token's logprob is its logit less the total. */
export interface LogitRow {
  readonly logits: Float32Array;
  readonly total: number;
}
