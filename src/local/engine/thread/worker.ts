/** The thread all model work runs in: answers calls from the {@link Engine} on the other side. Or one that helps it. */
import { parentPort, workerData } from 'node:worker_threads';
import { EngineCore } from './core.js';
import type { FromWorker, ToWorker, WorkerMethods, WorkerSetup } from './messages.js';
import { decodeSafetensors } from '../files/safetensors.js';
import { help, startHelpers, type HelperSetup } from './helpers.js';
import { MODEL_SHAPES, modelInfo } from '../model/shapes.js';

if ('team' in (workerData as WorkerSetup | HelperSetup)) help(workerData as HelperSetup);
const port = parentPort;
if (port === null) throw new Error('this module runs in a worker thread');
const { weights, options } = workerData as WorkerSetup;
const shapes = MODEL_SHAPES.filter(({ name }) => weights[name] !== undefined);
const core = new EngineCore(
  shapes.map((shape) => ({ shape, weights: decodeSafetensors(weights[shape.name]!).tensors })),
  options,
);
await startHelpers(core.heap.team, new URL(import.meta.url));
const cancels = new Map<number, () => void>();

const methods: { [M in keyof WorkerMethods]: (id: number, args: WorkerMethods[M]) => unknown } = {
  beginBase: (_, args) => core.beginBase(...args),
  putTensor: (_, args) => core.putTensor(...args),
  finishBase: (_, [baseModel, endTokens, bytes]) =>
    core.finishBase(baseModel, { endTokens, ...(bytes === undefined ? {} : { bytesOf: (token) => bytes[token]! }) }),
  createModel: (_, args) => core.createModel(...args),
  forwardBackward: (_, args) => core.forwardBackward(...args),
  optimStep: (_, args) => core.optimStep(...args),
  exportState: (_, args) => core.exportState(...args),
  loadState: (_, args) => core.loadState(...args),
  createSampler: (_, args) => core.createSampler(...args),
  disposeModel: (_, args) => core.disposeModel(...args),
  disposeSampler: (_, args) => core.disposeSampler(...args),
  sample: async (id, args) => {
    const { result, cancel } = core.sample(...args);
    cancels.set(id, cancel);
    try {
      return await result;
    } finally {
      cancels.delete(id);
    }
  },
};

const send = (message: FromWorker) => port.postMessage(message);

async function answer({ id, method, args }: ToWorker & { readonly type: 'call' }): Promise<void> {
  try {
    const run = methods[method] as (id: number, args: readonly unknown[]) => unknown;
    send({ type: 'result', id, value: await run(id, args) });
  } catch (error) {
    const { name, message, stack } = error as Error;
    send({ type: 'error', id, name, message, ...(stack === undefined ? {} : { stack }) });
  }
}

port.on('message', (message: ToWorker) => {
  if (message.type === 'call') void answer(message);
  else cancels.get(message.id)?.();
});

send({ type: 'ready', baseModels: shapes.map(modelInfo) });
