import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import { LocalTinker, type LocalTinkerOptions } from '../../src/local/index.js';
import { ModelInput, TensorData, type PreparedDatum } from '../../src/wire/index.js';
import { connect, type Json, type LocalCaller } from './localCaller.js';
import { FakeEngine } from './localFakeEngine.js';

export interface Fixture {
  readonly local: LocalTinker;
  readonly caller: LocalCaller;
  readonly engine: FakeEngine;
}

const running: LocalTinker[] = [];
const folders: string[] = [];

/** Closes what {@link start} started, after each test of the file that calls this. */
export function closeAfterEach(): void {
  afterEach(async () => {
    await Promise.all(running.splice(0).map((local) => local.close()));
    await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true })));
  });
}

/** A folder that goes away after the services that were started. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tinker-rx-test-'));
  folders.push(folder);
  return folder;
}

/** A service with an engine that can be held. */
export async function start(options: LocalTinkerOptions = {}): Promise<Fixture> {
  const engine = new FakeEngine();
  const local = await LocalTinker.start({ engine, ...options });
  running.push(local);
  return { local, caller: connect(local), engine };
}

/** A datum of so many tokens, each predicting the next. */
export function datum(length = 3): PreparedDatum {
  const tokens = Array.from({ length }, (_, index) => index + 1);
  return {
    modelInput: ModelInput.fromInts(tokens),
    lossFnInputs: {
      target_tokens: TensorData.from(tokens, 'int64'),
      weights: TensorData.from(new Array<number>(length).fill(1), 'float32'),
    },
  };
}

export const jsonDatum = (length = 3): Json => {
  const tokens = Array.from({ length }, (_, index) => index + 1);
  return {
    model_input: { chunks: [{ type: 'encoded_text', tokens }] },
    loss_fn_inputs: {
      target_tokens: { data: tokens, dtype: 'int64', shape: [length] },
      weights: { data: new Array<number>(length).fill(1), dtype: 'float32', shape: [length] },
    },
  };
};

export const sampleBody = (fields: Json = {}): Json => ({
  num_samples: 1,
  prompt: { chunks: [{ type: 'encoded_text', tokens: [1, 2, 3] }] },
  sampling_params: { max_tokens: 2 },
  ...fields,
});

/** Resolves after a turn of the event loop in which sockets were served. */
export const soon = (ms = 20): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
