// The texts that are learned, a token a byte, and how SkyRL's answers about them are read.
import { ModelInput } from 'tinker-rx';
import { within } from './report.mjs';

export const TEXTS = ['the sea is blue today', 'grass is green all year', 'snow is white'];

export const tokensOf = (text) => Int32Array.from(Buffer.from(text));
export const textOf = (tokens) => Buffer.from(Array.from(tokens).filter((token) => token < 256)).toString();

export const DATA = TEXTS.map((text) => {
  const tokens = tokensOf(text);
  return {
    modelInput: ModelInput.fromInts(tokens.subarray(0, -1)),
    lossFnInputs: { target_tokens: tokens.subarray(1), weights: new Float32Array(tokens.length - 1).fill(1) },
  };
});
export const TOKENS = DATA.reduce((total, { modelInput }) => total + modelInput.length, 0);

export const sum = (values) => Array.from(values).reduce((total, value) => total + value, 0);
export const close = (a, b, tolerance = 1e-3) => Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(a), Math.abs(b));
export const fixed = (value) => value.toFixed(4);

/** One output of every datum. */
export const rows = (output, name) => output.lossFnOutputs.map((row) => Array.from(row[name].data));
/** SkyRL answers no metrics: the loss is the sum of every token's. */
export const lossOf = (output) => sum(rows(output, 'elementwise_loss').flat());
/** The loss of the data as the weights are now. */
export const lossNow = async (trainer) => lossOf(await within('forward', trainer.forward(DATA, 'cross_entropy')));
