import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, vi } from 'vitest';
import { LocalTinker } from 'tinker-rx/local';

/** An embedded service, and an environment in which commands find it, with an empty home, while a file of tests runs. */
export function commandHome(): { readonly folder: string; readonly local: LocalTinker } {
  let folder: string;
  let local: LocalTinker;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tinker-rx-cli-'));
    local = await LocalTinker.start();
    vi.stubEnv('TINKER_BASE_URL', local.url);
    vi.stubEnv('TINKER_API_KEY', local.apiKey);
    vi.stubEnv('TINKER_LOG', '');
    vi.stubEnv('NO_COLOR', '1');
    vi.stubEnv('HOME', folder);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await local.close();
    rmSync(folder, { recursive: true });
  });
  return {
    get folder() {
      return folder;
    },
    get local() {
      return local;
    },
  };
}
