import * as t from 'io-ts';
import { chunkBytes, ModelInput, ModelInputCodec } from './modelInput.js';
import { firstBadToken } from './number.js';
import { refuseUnknownKeys, request } from './record.js';
import { namedTensor, TensorDataCodec, type TensorData, type TensorInput } from './tensor.js';
import { ValidationError } from './tinkerError.js';

/** Where a run of a datum's positions comes from: the prompt of a sampled sequence, or the tokens sampled for it. */
export interface ProvenanceSpan {
  /** Of the prompt of a sequence, or of the tokens sampled for it. */
  readonly type: 'prompt' | 'sampled';
  /** `SampledSequence.sequenceId` of the sequence the run belongs to. */
  readonly sequenceId: string;
  /** Where the run starts in that prompt or in those sampled tokens. Default 0. */
  readonly offset?: number;
  /** How many positions the run has. */
  readonly length: number;
}

/** One training example: what the model reads, and the tensors its loss takes, by the wire's names. */
export interface Datum {
  /** What the model reads. Position i predicts token i + 1. */
  readonly modelInput: ModelInput;
  /** By name: `target_tokens`, `weights`, `advantages`, `logprobs` …, each as long as the input. */
  readonly lossFnInputs: Readonly<Record<string, TensorInput>>;
  /** Where the input's positions come from; together with `lossFnInputSpans` or not at all. Default: not told. */
  readonly modelInputSpans?: readonly ProvenanceSpan[];
  /** Where the targets come from. Default: not told. */
  readonly lossFnInputSpans?: readonly ProvenanceSpan[];
}

const DATUM_KEYS: ReadonlySet<string> = new Set<keyof Datum>([
  'modelInput',
  'lossFnInputs',
  'modelInputSpans',
  'lossFnInputSpans',
]);

/** A datum whose tensors have their final dtype and layout. */
export interface PreparedDatum extends Datum {
  readonly lossFnInputs: Readonly<Record<string, TensorData>>;
}

/**
 * Checks a datum and gives its tensors their dtypes.
 *
 * @throws ValidationError naming the datum by its place and the field that is wrong.
 */
export function prepareDatum(datum: Datum, index: number): PreparedDatum {
  const where = `data[${index}]`;
  if (typeof datum !== 'object' || datum === null) throw new ValidationError(`${where} must be a datum`);
  refuseUnknownKeys(datum, DATUM_KEYS, where);
  if (!(datum.modelInput instanceof ModelInput)) throw new ValidationError(`${where}.modelInput must be a ModelInput`);
  if (datum.modelInput.chunks.every((chunk) => chunk.type === 'encoded_text' && chunk.tokens.length === 0))
    throw new ValidationError(`${where}.modelInput is empty`);
  if (typeof datum.lossFnInputs !== 'object' || datum.lossFnInputs === null)
    throw new ValidationError(`${where}.lossFnInputs must be tensors by name`);
  const tensors = new Map<string, TensorData>();
  for (const [name, input] of Object.entries(datum.lossFnInputs)) {
    try {
      tensors.set(name, namedTensor(name, input));
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      throw new ValidationError(`${where}.lossFnInputs.${name}: ${error.message}`, { cause: error });
    }
  }
  // A map first: a tensor called __proto__ would be lost as the key of an object.
  const lossFnInputs = Object.fromEntries(tensors);
  checkLengths(datum.modelInput, lossFnInputs, where);
  const { modelInput, modelInputSpans, lossFnInputSpans } = datum;
  // Field by field: a spread takes V8 ten times as long, and a batch has thousands.
  if (modelInputSpans === undefined && lossFnInputSpans === undefined) return { modelInput, lossFnInputs };
  if (modelInputSpans === undefined || lossFnInputSpans === undefined)
    throw new ValidationError(
      `${where}: provenance comes as a pair: give modelInputSpans and lossFnInputSpans, or neither`,
    );
  checkTiling(modelInputSpans, modelInput.length, `${where}.modelInputSpans`);
  const targets = lossFnInputs['target_tokens'];
  if (targets?.shape.length === 1) checkTiling(lossFnInputSpans, targets.shape[0]!, `${where}.lossFnInputSpans`);
  return { modelInput, lossFnInputs, modelInputSpans, lossFnInputSpans };
}

/** Every tensor with one row per position must have as many rows as the input has positions. */
function checkLengths(input: ModelInput, tensors: Readonly<Record<string, TensorData>>, where: string): void {
  const targets = tensors['target_tokens'];
  if (targets === undefined) return;
  const rows = targets.shape[0] ?? 0;
  const known = input.chunks.every((chunk) => chunk.type === 'encoded_text');
  if (known && rows !== input.length) {
    throw new ValidationError(
      `${where}.lossFnInputs.target_tokens has ${rows} rows, but the input has ${input.length} positions`,
    );
  }
  for (const name of ['weights', 'advantages', 'logprobs', 'sequence_ratio_mask']) {
    const tensor = tensors[name];
    if (tensor !== undefined && tensor.shape[0] !== rows) {
      throw new ValidationError(
        `${where}.lossFnInputs.${name} has ${tensor.shape[0] ?? 0} rows, target_tokens has ${rows}`,
      );
    }
  }
  const bad = firstBadToken(targets.data);
  if (bad >= 0)
    throw new ValidationError(
      `${where}.lossFnInputs.target_tokens holds ${targets.data[bad]}: token ids are integers from 0 to 2³¹ − 1`,
    );
}

function checkTiling(spans: readonly ProvenanceSpan[], length: number, where: string): void {
  let covered = 0;
  spans.forEach(({ type, sequenceId, offset = 0, length: run }, index) => {
    if ((type !== 'prompt' && type !== 'sampled') || sequenceId === '' || !(offset >= 0) || !(run >= 0)) {
      throw new ValidationError(
        `${where}[${index}] needs type prompt or sampled, a sequenceId, offset ≥ 0 and length ≥ 0`,
      );
    }
    covered += run;
  });
  if (covered !== length) throw new ValidationError(`${where} cover ${covered} positions, but the field has ${length}`);
}

/** The JSON form of a datum, for servers that take no protobuf. Spans have no place in it. */
export const DatumCodec: t.Type<PreparedDatum, object> = (() => {
  const Raw = request('Datum', {
    model_input: ModelInputCodec,
    loss_fn_inputs: t.record(t.string, TensorDataCodec),
  });
  return new t.Type<PreparedDatum, object>(
    'Datum',
    (u): u is PreparedDatum => typeof u === 'object' && u !== null && 'modelInput' in u && 'lossFnInputs' in u,
    (u, context) => Raw.validate(u, context),
    ({ modelInput, lossFnInputs }) => Raw.encode({ modelInput, lossFnInputs }),
  );
})();

// Training data travels as protobuf: four bytes per token, eight per int64 and per index.
const PROTO_BYTES_PER_TOKEN = 4;
const WIDE_BYTES = 8;

/** What a datum takes of a chunk's size and of the forward-backward dispatch budget. */
export function estimateDatumBytes({ modelInput, lossFnInputs }: PreparedDatum): number {
  let bytes = chunkBytes(modelInput.chunks, PROTO_BYTES_PER_TOKEN);
  for (const { dtype, data, sparse } of Object.values(lossFnInputs)) {
    bytes += data.length * (dtype === 'int64' ? WIDE_BYTES : 4);
    if (sparse !== undefined) bytes += WIDE_BYTES * (sparse.crowIndices.length + sparse.colIndices.length);
  }
  return bytes;
}
