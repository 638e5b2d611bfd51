import type { PromptAltTokens, SampledSequence, SampleResponse, TopkLogprobs } from '../sampling.js';
import type { TensorData } from '../tensor.js';
import { toFloat32, toInt32, readTensor, writeTensor } from './tensor.js';
import { readFields } from './fields.js';
import { encodeMessage, type MessageWriter } from './messageWriter.js';

const STOP_REASONS = ['stop', 'length'] as const;

/** A finished sample from protobuf bytes. */
export function decodeSampleResponse(bytes: Uint8Array): SampleResponse {
  const sequences: SampledSequence[] = [];
  let promptLogprobs: Float32Array | undefined;
  let topkPromptLogprobs: TopkLogprobs | undefined;
  let targetPromptLogprobs: TensorData | undefined;
  let promptAltTokens: PromptAltTokens | undefined;
  let promptCacheHitTokens = 0;
  readFields(bytes, (field, reader) => {
    if (field === 1) sequences.push(readSequence(reader.bytes()));
    else if (field === 2) promptLogprobs = toFloat32(reader.bytes());
    else if (field === 3) topkPromptLogprobs = readTopk(reader.bytes());
    else if (field === 4) promptCacheHitTokens = reader.int32();
    else if (field === 5) targetPromptLogprobs = readTensor(reader.bytes());
    else if (field === 6) promptAltTokens = readAltTokens(reader.bytes());
    else return false;
    return true;
  });
  return {
    sequences,
    ...(promptLogprobs === undefined || promptLogprobs.length === 0 ? {} : { promptLogprobs }),
    ...(topkPromptLogprobs === undefined ? {} : { topkPromptLogprobs }),
    ...(targetPromptLogprobs === undefined ? {} : { targetPromptLogprobs }),
    ...(promptAltTokens === undefined ? {} : { promptAltTokens }),
    promptCacheHitTokens,
  };
}

function readSequence(bytes: Uint8Array): SampledSequence {
  let reason = 0;
  let tokens: Int32Array = new Int32Array();
  let logprobs: Float32Array | undefined;
  let topkLogprobs: TopkLogprobs | undefined;
  readFields(bytes, (field, reader) => {
    if (field === 1) reason = reader.int32();
    else if (field === 2) tokens = toInt32(reader.bytes());
    else if (field === 3) logprobs = toFloat32(reader.bytes());
    else if (field === 4) topkLogprobs = readTopk(reader.bytes());
    else return false;
    return true;
  });
  const stopReason = STOP_REASONS[reason];
  if (stopReason === undefined) throw new RangeError(`unknown stop reason ${reason}`);
  return {
    stopReason,
    tokens,
    ...(logprobs === undefined || logprobs.length === 0 ? {} : { logprobs }),
    ...(topkLogprobs === undefined ? {} : { topkLogprobs }),
  };
}

/** undefined if there are no cells at all. */
function readTopk(bytes: Uint8Array): TopkLogprobs | undefined {
  let tokenIds: Int32Array = new Int32Array();
  let logprobs: Float32Array = new Float32Array();
  let k = 0;
  let length = 0;
  readFields(bytes, (field, reader) => {
    if (field === 1) tokenIds = toInt32(reader.bytes());
    else if (field === 2) logprobs = toFloat32(reader.bytes());
    else if (field === 3) k = reader.uint32();
    else if (field === 4) length = reader.uint32();
    else return false;
    return true;
  });
  if (k === 0 || length === 0) return undefined;
  if (tokenIds.length !== k * length || logprobs.length !== k * length)
    throw new RangeError('top-k arrays do not match their size');
  return { tokenIds, logprobs, k, length };
}

function readAltTokens(bytes: Uint8Array): PromptAltTokens {
  let tokens: TensorData | undefined;
  let logprobs: TensorData | undefined;
  readFields(bytes, (field, reader) => {
    if (field === 1) tokens = readTensor(reader.bytes());
    else if (field === 2) logprobs = readTensor(reader.bytes());
    else return false;
    return true;
  });
  if (tokens === undefined || logprobs === undefined) throw new RangeError('alternative tokens lack a tensor');
  return { tokens, logprobs };
}

/** The inverse, for servers. */
export function encodeSampleResponse(response: SampleResponse): Uint8Array {
  const { sequences, promptLogprobs, topkPromptLogprobs, targetPromptLogprobs, promptAltTokens } = response;
  return encodeMessage((writer) => {
    for (const { stopReason, tokens, logprobs, topkLogprobs } of sequences) {
      writer.message(1, (sequence) => {
        sequence.int(1, STOP_REASONS.indexOf(stopReason)).bytes(2, tokens);
        if (logprobs !== undefined) sequence.bytes(3, logprobs);
        if (topkLogprobs !== undefined) sequence.message(4, (topk) => writeTopk(topk, topkLogprobs));
      });
    }
    if (promptLogprobs !== undefined) writer.bytes(2, promptLogprobs);
    if (topkPromptLogprobs !== undefined) writer.message(3, (topk) => writeTopk(topk, topkPromptLogprobs));
    writer.int(4, response.promptCacheHitTokens);
    if (targetPromptLogprobs !== undefined) writer.message(5, (tensor) => writeTensor(tensor, targetPromptLogprobs));
    if (promptAltTokens !== undefined) {
      writer.message(6, (alternatives) => {
        alternatives.message(1, (tensor) => writeTensor(tensor, promptAltTokens.tokens));
        alternatives.message(2, (tensor) => writeTensor(tensor, promptAltTokens.logprobs));
      });
    }
  });
}

function writeTopk(writer: MessageWriter, { tokenIds, logprobs, k, length }: TopkLogprobs): void {
  writer.bytes(1, tokenIds).bytes(2, logprobs).int(3, k).int(4, length);
}
