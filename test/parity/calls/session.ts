import { ServiceClient } from 'tinker-rx';
import { vi } from 'vitest';
import { API_KEY, BASE_MODEL, BASE_URL, type Play } from '../support/stage.js';

export const session: Readonly<Record<string, Play>> = {
  capabilities: async (stage) => {
    await stage.result('get_server_capabilities', stage.service().getServerCapabilities());
  },
  'session-options': async (stage) => {
    vi.stubEnv('TINKER_TAGS', 'beta,alpha');
    vi.stubEnv('TINKER_PROJECT_ID', 'not-used');
    vi.stubEnv('CLOUDFLARE_ACCESS_CLIENT_ID', 'access-id');
    vi.stubEnv('CLOUDFLARE_ACCESS_CLIENT_SECRET', 'access-secret');
    const service = stage.service({
      userMetadata: { purpose: 'parity', run: '1' },
      projectId: 'project-1',
      displayName: 'a name',
      defaultHeaders: { 'X-Recorded-Extra': 'yes' },
    });
    await service.createSamplingClient({ baseModel: BASE_MODEL });
    await service.close({ status: 'success' });
  },
  'session-environment': async (stage) => {
    vi.stubEnv('TINKER_API_KEY', API_KEY);
    vi.stubEnv('TINKER_BASE_URL', `${BASE_URL}/`);
    vi.stubEnv('TINKER_PROJECT_ID', 'project-2');
    vi.stubEnv('TINKER_TELEMETRY', '0');
    const service = new ServiceClient({ transport: stage.replay.transport });
    await service.createSamplingClient({ baseModel: BASE_MODEL });
    await service.close();
  },
  'session-finish': async (stage) => {
    const ends = [
      { status: 'success', detail: 'all done' },
      { status: 'errored', detail: 'out of luck' },
      { status: 'interrupted' },
    ] as const;
    for (const end of ends) {
      const service = stage.service();
      await service.createSamplingClient({ baseModel: BASE_MODEL });
      await service.close(end);
      await service.close({ status: 'success' });
    }
  },
  jwt: async (stage) => {
    await stage.sampler();
    await stage.result('whoami', stage.rest().whoami());
  },
  'credential-command': async (stage) => {
    vi.stubEnv('TINKER_CREDENTIAL_CMD', 'echo tml-from-the-command');
    await stage.sampler();
  },
};
