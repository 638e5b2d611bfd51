import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as zlib from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { LocalTinker, type LocalTinkerOptions } from '../../src/local/index.js';

const SCRIPT = fileURLToPath(new URL('../parity/local_sdk.py', import.meta.url));

/** Runs the script against a service; the promise gives its output and exit code. */
function runSdk(local: LocalTinker, poller: 'on' | 'off'): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const python = spawn('python3', [SCRIPT], {
      env: {
        ...process.env,
        TINKER_BASE_URL: local.url,
        TINKER_API_KEY: local.apiKey,
        TINKER_TELEMETRY: '1',
        LOCAL_SDK_POLLER: poller,
      },
    });
    let output = '';
    python.stdout.on('data', (text: Buffer) => (output += text.toString()));
    python.stderr.on('data', (text: Buffer) => (output += text.toString()));
    python.on('error', reject);
    python.on('close', (code) => resolve({ code, output }));
  });
}

describe('the real Python SDK against the embedded service', () => {
  let local: LocalTinker | undefined;
  afterEach(() => local?.close());

  const live = async (poller: 'on' | 'off', options: LocalTinkerOptions): Promise<Set<string>> => {
    const seen = new Set<string>();
    local = await LocalTinker.start({ ...options, onRequest: ({ endpoint }) => seen.add(endpoint) });
    const { code, output } = await runSdk(local, poller);
    expect(output.trim().split('\n').at(-1), output).toBe('ok');
    expect(code).toBe(0);
    return seen;
  };

  // Making the virtual environment takes a minute or two the first time.
  const timeout = 300_000;

  it('lives its whole life with one poll a future', { timeout }, async () => {
    const seen = await live('off', {});
    expect(seen).toContain('retrieve_future');
    expect(seen).not.toContain('retrieve_futures');
  });

  it(
    'lives its whole life with the session poller, tokens, joins and models made by loading',
    { timeout },
    async () => {
      const seen = await live('on', {
        flags: {
          sampleUseRetrieveFutures: true,
          sampleJoinSamplingSession: true,
          createModelViaLoadWeights: true,
          pjwtAuthEnabled: true,
          customLossServerSide: true,
          // From Node 22.15 on the bodies of passes may come compressed.
          protoCompressFwdbwd: 'zstdDecompress' in zlib,
        },
        dynamicFlags: { sampleCancelEnabled: true },
        metadataOnlyBytes: 200,
      });
      for (const endpoint of ['retrieve_futures', 'join_sampling_session', 'auth/token', 'telemetry']) {
        expect(seen).toContain(endpoint);
      }
    },
  );
});
