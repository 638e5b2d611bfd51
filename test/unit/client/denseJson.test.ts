import { describe, expect, it } from 'vitest';
import { ModelInput, type Datum } from 'tinker-rx';
import { text } from 'tinker-rx/testing';
import { stage } from '../../marbles/client/stage.js';

const ROWS = 4;
const COLUMNS = 8;
const row = (at: number, value: number): number[] =>
  Array.from({ length: COLUMNS }, (_, column) => (column === at ? value : 0));
/** Soft targets that the protocol sends sparse. */
const SPARSE: Datum = {
  modelInput: ModelInput.fromInts([1, 2, 3, 4]),
  lossFnInputs: {
    target_tokens: Array.from({ length: ROWS }, (_, index) => row(index, 5)),
    weights: Array.from({ length: ROWS }, (_, index) => row(index, 0.5)),
  },
};

describe('a pass as JSON', () => {
  it('spells sparse tensors out: JSON servers read the values alone and would take them for a shorter row', () => {
    const on = stage({
      script: {
        forward_backward: ({ body }) => (body instanceof Uint8Array ? text(500, 'Internal Server Error') : undefined),
      },
    });
    on.clock.resolve(on.trainer().forwardBackward([SPARSE], 'cross_entropy'));
    const sent = on.fake.to('forward_backward').at(-1)!.json as {
      forward_backward_input: { data: { loss_fn_inputs: Record<string, Record<string, unknown>> }[] };
    };
    const { target_tokens, weights } = sent.forward_backward_input.data[0]!.loss_fn_inputs;
    expect(target_tokens).toStrictEqual({
      data: [0, 1, 2, 3].flatMap((index) => row(index, 5)),
      dtype: 'int64',
      shape: [ROWS, COLUMNS],
    });
    expect(weights).toStrictEqual({
      data: [0, 1, 2, 3].flatMap((index) => row(index, 0.5)),
      dtype: 'float32',
      shape: [ROWS, COLUMNS],
    });
  });
});
