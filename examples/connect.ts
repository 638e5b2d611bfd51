// Where the examples run: the service in TINKER_BASE_URL if there is a key for it, else the embedded one, with the model in MODEL if there is one.
import { ServiceClient } from 'tinker-rx';
import { LocalTinker } from 'tinker-rx/local';

export async function connect(): Promise<{
  service: ServiceClient;
  baseModel: string;
  apiKey: string;
  close: () => Promise<void>;
}> {
  const hosted = Boolean(process.env['TINKER_API_KEY']);
  const model = process.env['MODEL'];
  const local = hosted ? undefined : await LocalTinker.start(model === undefined ? {} : { models: [model] });
  const service = new ServiceClient(local === undefined ? {} : { baseUrl: local.url, apiKey: local.apiKey });
  return {
    service,
    baseModel: process.env['BASE_MODEL'] ?? local?.baseModels[0] ?? 'Qwen/Qwen3-8B',
    apiKey: local?.apiKey ?? process.env['TINKER_API_KEY']!,
    close: async () => {
      await service.close();
      await local?.close();
    },
  };
}
