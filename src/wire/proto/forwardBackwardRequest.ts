import type { ModelInputChunk } from '../chunk.js';
import type { PreparedDatum, ProvenanceSpan } from '../datum.js';
import { ModelInput } from '../modelInput.js';
import { ValidationError } from '../tinkerError.js';
import type { TensorData } from '../tensor.js';
import type { ForwardBackwardRequest } from '../training.js';
import { toInt32, readTensor, writeTensor } from './tensor.js';
import { readDoubleEntry, readEntry, readFields } from './fields.js';
import { encodeMessage, type MessageWriter } from './messageWriter.js';

/** A forward or forward-backward pass as protobuf bytes. */
export function encodeForwardBackwardRequest(request: ForwardBackwardRequest): Uint8Array {
  const config = Object.entries(request.lossFnConfig ?? {});
  return encodeMessage((writer) => {
    writer.string(1, request.modelId).int(2, request.seqId);
    for (const datum of request.data) writer.message(3, (nested) => writeDatum(nested, datum));
    writer.string(4, request.lossFn);
    for (const [key, value] of config) {
      // Numbers go into both maps: servers that know only the first still see them.
      if (typeof value === 'number') writer.entry(5, key, (entry) => entry.double(2, value));
    }
    writer.int(6, request.forwardOnly ? 1 : 0);
    for (const [key, value] of config) {
      writer.entry(7, key, (entry) =>
        entry.message(2, (arm) => (typeof value === 'number' ? arm.double(1, value) : arm.presentString(2, value))),
      );
    }
  });
}

/** Refuses what protobuf has no place for, before a request takes its number. @throws ValidationError */
export function checkEncodable(data: readonly PreparedDatum[]): void {
  data.forEach(({ modelInput }, index) => {
    if (modelInput.chunks.some((chunk) => chunk.type === 'image_asset_pointer'))
      throw new ValidationError(`data[${index}].modelInput: ${NO_POINTERS}`);
  });
}

const NO_POINTERS = 'image_asset_pointer chunks have no place in a training request; send the image itself';

function writeDatum(writer: MessageWriter, datum: PreparedDatum): void {
  for (const chunk of datum.modelInput.chunks) writer.message(1, (nested) => writeChunk(nested, chunk));
  for (const name of Object.keys(datum.lossFnInputs)) {
    const tensor = datum.lossFnInputs[name]!;
    writer.entry(2, name, (entry) => entry.message(2, (nested) => writeTensor(nested, tensor)));
  }
  for (const span of datum.modelInputSpans ?? []) writer.message(3, (nested) => writeSpan(nested, span));
  for (const span of datum.lossFnInputSpans ?? []) writer.message(4, (nested) => writeSpan(nested, span));
}

function writeChunk(writer: MessageWriter, chunk: ModelInputChunk): void {
  switch (chunk.type) {
    case 'encoded_text':
      writer.message(1, (text) => text.bytes(1, chunk.tokens));
      return;
    case 'image':
      writer.message(2, (image) => {
        image.bytes(1, chunk.data).string(2, chunk.format);
        if (chunk.expectedTokens !== undefined) image.presentInt(3, chunk.expectedTokens);
      });
      return;
    case 'dmel':
      writer.message(3, (audio) => audio.bytes(1, chunk.dmel));
      return;
    case 'image_asset_pointer':
      throw new ValidationError(NO_POINTERS);
  }
}

function writeSpan(writer: MessageWriter, { type, sequenceId, offset = 0, length }: ProvenanceSpan): void {
  writer.message(type === 'prompt' ? 1 : 2, (arm) => arm.string(1, sequenceId).int(2, offset).int(3, length));
}

/** The inverse, for servers. @throws an Error from the reader when the bytes are no such message. */
export function decodeForwardBackwardRequest(bytes: Uint8Array): ForwardBackwardRequest {
  let modelId = '';
  let seqId = 0;
  const data: PreparedDatum[] = [];
  let lossFn = '';
  let forwardOnly = false;
  const config = new Map<string, number | string>();
  readFields(bytes, (field, reader) => {
    if (field === 1) modelId = reader.string();
    else if (field === 2) seqId = reader.int32();
    else if (field === 3) data.push(readDatum(reader.bytes()));
    else if (field === 4) lossFn = reader.string();
    else if (field === 5) {
      const [key, value] = readDoubleEntry(reader.bytes());
      config.set(key, value);
    } else if (field === 6) forwardOnly = reader.bool();
    else if (field === 7) {
      const { key, value } = readEntry(reader.bytes());
      config.set(key, readConfigValue(value));
    } else return false;
    return true;
  });
  const lossFnConfig = config.size > 0 ? { lossFnConfig: Object.fromEntries(config) } : {};
  return { modelId, seqId, data, lossFn, forwardOnly, ...lossFnConfig };
}

function readConfigValue(bytes: Uint8Array): number | string {
  let value: number | string = 0;
  readFields(bytes, (field, reader) => {
    if (field === 1) value = reader.double();
    else if (field === 2) value = reader.string();
    else return false;
    return true;
  });
  return value;
}

function readDatum(bytes: Uint8Array): PreparedDatum {
  const chunks: ModelInputChunk[] = [];
  const lossFnInputs = new Map<string, TensorData>();
  const modelInputSpans: ProvenanceSpan[] = [];
  const lossFnInputSpans: ProvenanceSpan[] = [];
  readFields(bytes, (field, reader) => {
    if (field === 1) chunks.push(readChunk(reader.bytes()));
    else if (field === 2) {
      const { key, value } = readEntry(reader.bytes());
      lossFnInputs.set(key, readTensor(value));
    } else if (field === 3) modelInputSpans.push(readSpan(reader.bytes()));
    else if (field === 4) lossFnInputSpans.push(readSpan(reader.bytes()));
    else return false;
    return true;
  });
  const spans = modelInputSpans.length > 0 || lossFnInputSpans.length > 0 ? { modelInputSpans, lossFnInputSpans } : {};
  return { modelInput: new ModelInput(chunks), lossFnInputs: Object.fromEntries(lossFnInputs), ...spans };
}

function readChunk(bytes: Uint8Array): ModelInputChunk {
  let chunk: ModelInputChunk | undefined;
  readFields(bytes, (field, reader) => {
    if (field === 1) chunk = { type: 'encoded_text', tokens: toInt32(readOnlyBytes(reader.bytes())) };
    else if (field === 2) chunk = readImage(reader.bytes());
    else if (field === 3) chunk = { type: 'dmel', dmel: readOnlyBytes(reader.bytes()) };
    else return false;
    return true;
  });
  if (chunk === undefined) throw new RangeError('a model input chunk of an unknown kind');
  return chunk;
}

/** Field 1 of a message that has no other. */
function readOnlyBytes(bytes: Uint8Array): Uint8Array {
  let value: Uint8Array = new Uint8Array();
  readFields(bytes, (field, reader) => {
    if (field !== 1) return false;
    value = reader.bytes();
    return true;
  });
  return value;
}

function readImage(bytes: Uint8Array): ModelInputChunk {
  let data: Uint8Array = new Uint8Array();
  let format = '';
  let expectedTokens: number | undefined;
  readFields(bytes, (field, reader) => {
    if (field === 1) data = reader.bytes();
    else if (field === 2) format = reader.string();
    else if (field === 3) expectedTokens = reader.int32();
    else return false;
    return true;
  });
  if (format !== 'png' && format !== 'jpeg') throw new RangeError(`unknown image format ${JSON.stringify(format)}`);
  return { type: 'image', data, format, ...(expectedTokens === undefined ? {} : { expectedTokens }) };
}

function readSpan(bytes: Uint8Array): ProvenanceSpan {
  const span = { type: 'prompt' as 'prompt' | 'sampled', sequenceId: '', offset: 0, length: 0 };
  readFields(bytes, (arm, outer) => {
    if (arm !== 1 && arm !== 2) return false;
    span.type = arm === 1 ? 'prompt' : 'sampled';
    readFields(outer.bytes(), (field, reader) => {
      if (field === 1) span.sequenceId = reader.string();
      else if (field === 2) span.offset = Number(reader.int64());
      else if (field === 3) span.length = Number(reader.int64());
      else return false;
      return true;
    });
    return true;
  });
  return span;
}
