// Where the examples run: the service in TINKER_BASE_URL if there is a key for it, else the embedded one.
import { ServiceClient } from 'tinker-rx';
import { LocalTinker } from 'tinker-rx/local';

export async function connect(): Promise<{
  service: ServiceClient;
  baseModel: string;
  apiKey: string;
  close: () => Promise<void>;
}> {
  const hosted = process.env['TINKER_API_KEY'] !== undefined;
  const local = hosted ? undefined : await LocalTinker.start();
  const service = new ServiceClient(local === undefined ? {} : { baseUrl: local.url, apiKey: local.apiKey });
  return {
    service,
    baseModel: process.env['BASE_MODEL'] ?? (hosted ? 'Qwen/Qwen3-8B' : 'tinker-rx/tiny'),
    apiKey: local?.apiKey ?? process.env['TINKER_API_KEY']!,
    close: async () => {
      await service.close();
      await local?.close();
    },
  };
}
