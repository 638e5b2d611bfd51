import type { ModelInputChunk } from './chunk.js';
import type { PreparedDatum } from './datum.js';
import type { ModelInput } from './modelInput.js';
import type { TensorData } from './tensor.js';

// A prompt travels as JSON (about ten characters a token), training data as protobuf (four bytes a token).
const JSON_BYTES_PER_TOKEN = 10;
const PROTO_BYTES_PER_TOKEN = 4;
const INDEX_BYTES = 8;

const chunkBytes = (chunk: ModelInputChunk, bytesPerToken: number): number => {
  switch (chunk.type) {
    case 'encoded_text':
      return chunk.tokens.length * bytesPerToken;
    case 'image':
      return chunk.data.length;
    case 'image_asset_pointer':
      return chunk.location.length;
    case 'dmel':
      return chunk.dmel.length;
  }
};

/** What a prompt takes of the sampling dispatch budget. */
export const estimatePromptBytes = (prompt: ModelInput): number =>
  prompt.chunks.reduce((sum, chunk) => sum + chunkBytes(chunk, JSON_BYTES_PER_TOKEN), 0);

const tensorBytes = ({ dtype, data, sparse }: TensorData): number =>
  data.length * (dtype === 'int64' ? 8 : 4) +
  (sparse === undefined ? 0 : INDEX_BYTES * (sparse.crowIndices.length + sparse.colIndices.length));

/** What a datum takes of a chunk's size and of the forward-backward dispatch budget. */
export const estimateDatumBytes = (datum: PreparedDatum): number =>
  datum.modelInput.chunks.reduce((sum, chunk) => sum + chunkBytes(chunk, PROTO_BYTES_PER_TOKEN), 0) +
  Object.values(datum.lossFnInputs).reduce((sum, tensor) => sum + tensorBytes(tensor), 0);
