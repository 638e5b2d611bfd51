import { basename } from 'node:path';
import { encodeFloats } from '../../support/files/floats.js';
import { GgufModel } from '../../support/files/gguf/GgufModel.js';
import type { OpenedModel, StoredTensor } from './OpenedModel.js';
import { endTokensOf, shapeOfConfig } from './shapeOfConfig.js';

/** Opens a model in a GGUF file. Without a name it is called by its maker and its file. */
export async function openGguf(path: string, name: string | undefined): Promise<OpenedModel> {
  const model = await GgufModel.open(path);
  return {
    shape: shapeOfConfig(model.config, path, name ?? nameOf(model)),
    endTokens: endTokensOf(model.config),
    tensorShape: (tensor) => model.find(tensor)?.shape,
    tensor: async (tensor): Promise<StoredTensor> => {
      const data = await model.values(tensor);
      const { shape, type } = model.find(tensor)!;
      if (type !== 'BF16') return { shape, dtype: 'f32', data };
      const halves = new Uint16Array(data.length);
      encodeFloats(data, 'BF16', new Uint8Array(halves.buffer));
      return { shape, dtype: 'bf16', data: halves };
    },
    tokenizerFiles: model.tokenizerFiles,
    close: () => model.close(),
  };
}

/** `SmolLM2-135M-Instruct.Q4_1.gguf` of HuggingFaceTB → `HuggingFaceTB/SmolLM2-135M-Instruct`, as the repository of the model is called. */
function nameOf({ path, organization }: GgufModel): string {
  const file = basename(path).replace(/([.-](I?Q\d\w*|F16|F32|BF16))?\.gguf$/i, '');
  return organization === undefined ? file : `${organization}/${file}`;
}
