import {
  decodeForwardBackwardRequest,
  encodeForwardBackwardRequest,
  ForwardBackwardRequestJson,
  ForwardRequestJson,
  OptimStepRequest,
  prepareDatum,
  TensorData,
  type ForwardBackwardOutput,
  type ForwardBackwardRequest,
} from '../../wire/index.js';
import { elementwiseLoss } from '../dialect/elementwiseLoss.js';
import type { EngineTensor, ForwardBackwardResult } from '../engine/types.js';
import { HttpError } from '../http/httpError.js';
import type { Reply } from '../http/reply.js';
import type { RequestContext } from '../http/requestContext.js';
import { post, type Route } from '../http/router.js';
import { UserError } from '../queue/failure.js';
import type { FutureResult } from '../queue/localFuture.js';
import type { LocalService } from '../service/localService.js';
import { findCustomLoss } from './customLoss.js';
import { digestOf, promiseOf } from './promise.js';
import { submit } from './submit.js';

/** Forward, backward and optimizer steps. */
export const trainingRoutes = (service: LocalService): Route[] => [
  post('forward_backward', (context) => {
    if (!context.sendsProtobuf) {
      const { forwardBackwardInput: input, modelId, seqId } = context.decode(ForwardBackwardRequestJson);
      return forwardBackward(service, context, { modelId, ...input, forwardOnly: false }, seqId);
    }
    const request = decodeProtobuf(context.body);
    return forwardBackward(service, context, request, request.seqId);
  }),
  post('forward', (context) => {
    const { forwardInput: input, modelId, seqId } = context.decode(ForwardRequestJson);
    return forwardBackward(service, context, { modelId, ...input, forwardOnly: true }, seqId);
  }),
  post('optim_step', (context) => {
    const { modelId, seqId, adamParams, optimizerParams } = context.decode(OptimStepRequest);
    return submit(service, context, {
      requestType: 'OptimStep',
      modelId,
      seqId,
      run: async () => {
        if (optimizerParams !== undefined) {
          throw new UserError(`this service has no ${optimizerParams.type} optimizer: send adam_params`);
        }
        const { metrics } = await service.engine.optimStep(modelId, adamParams);
        return { type: 'json', value: { metrics, type: 'optim_step' } };
      },
    });
  }),
];

function decodeProtobuf(body: Buffer): ForwardBackwardRequest {
  try {
    return decodeForwardBackwardRequest(body);
  } catch (error) {
    throw new HttpError(422, `the body is not a valid ForwardBackwardRequest: ${(error as Error).message}`);
  }
}

type Pass = Omit<ForwardBackwardRequest, 'seqId'>;

function forwardBackward(
  service: LocalService,
  context: RequestContext,
  request: Pass,
  seqId: number | undefined,
): Reply {
  if (request.data.length === 0 && service.dialect.losesEmptyPasses) {
    return promiseOf(service, service.futures.create({ requestType: 'ForwardBackward', modelId: request.modelId }));
  }
  return submit(service, context, {
    requestType: request.forwardOnly ? 'Forward' : 'ForwardBackward',
    modelId: request.modelId,
    seqId,
    digest: digestOfPass(context, request, seqId),
    run: ({ baseModel, sessionId }, cycle) => runPass(service, request, cycle, { baseModel, sessionId }),
  });
}

/** A pass that came as JSON has the digest it would have had as protobuf. */
function digestOfPass(context: RequestContext, request: Pass, seqId = 0): string {
  const body = context.sendsProtobuf ? context.body : encodeForwardBackwardRequest({ ...request, seqId });
  return digestOf({ endpoint: 'forward_backward', body });
}

async function runPass(
  service: LocalService,
  request: Pass,
  cycle: number,
  attribution: { readonly baseModel: string; readonly sessionId: string },
): Promise<FutureResult> {
  const { modelId, lossFn, lossFnConfig = {}, forwardOnly } = request;
  if (request.data.length === 0) throw new UserError('forward_backward needs at least one datum');
  const data = request.data.map((datum, index) => {
    const { modelInput, lossFnInputs } = prepareDatum(datum, index);
    return { tokens: modelInput.toInts(), inputs: lossFnInputs };
  });
  if (service.options.refuseUnknownInputs) refuseUnknownInputs(lossFn, data);
  const loss = lossFn === 'custom' ? findCustomLoss(service, attribution.sessionId, lossFnConfig) : lossFn;
  const result = await service.engine.forwardBackward(modelId, data, loss, lossFnConfig, { forwardOnly });
  const tokens = data.reduce((sum, datum) => sum + datum.tokens.length, 0);
  service.usage.record({ type: 'training' }, tokens, attribution);
  const output = toOutput(result, cycle);
  if (!service.dialect.elementwiseLoss) return { type: 'forward_backward', value: output };
  const lossFnOutputs = output.lossFnOutputs.map((record, index) => ({
    elementwise_loss: elementwiseLoss(lossFn, record['logprobs']!, data[index]!, lossFnConfig),
    ...record,
  }));
  return { type: 'forward_backward', value: { ...output, lossFnOutputs } };
}

const POLICY = ['target_tokens', 'logprobs', 'advantages'];
const CLIPPED = [...POLICY, 'clip_low_threshold', 'clip_high_threshold'];
/** What each ready loss reads. */
const READS: Readonly<Record<string, readonly string[]>> = {
  cross_entropy: ['target_tokens', 'weights'],
  importance_sampling: POLICY,
  ppo: CLIPPED,
  cispo: CLIPPED,
  dro: POLICY,
  gspo: [...CLIPPED, 'sequence_ratio_mask'],
};

function refuseUnknownInputs(lossFn: string, data: readonly { readonly inputs: object }[]): void {
  const known = READS[lossFn];
  if (known === undefined) return;
  data.forEach(({ inputs }, index) => {
    const unknown = Object.keys(inputs).find((name) => !known.includes(name));
    if (unknown === undefined) return;
    const said = `datum ${index}: ${lossFn} does not read ${unknown.slice(0, 100)}`;
    throw new UserError(`${said}; it reads ${known.join(', ')}`);
  });
}

function toOutput({ outputs, metrics }: ForwardBackwardResult, cycle: number): ForwardBackwardOutput {
  return {
    lossFnOutputType: 'ArrayRecord',
    lossFnOutputs: outputs.map((record) =>
      Object.fromEntries(Object.entries(record).map(([name, tensor]) => [name, toTensorData(tensor)])),
    ),
    metrics: { ...metrics, 'clock_cycle:unique': cycle },
  };
}

export const toTensorData = ({ dtype, data, shape, sparse }: EngineTensor): TensorData =>
  new TensorData({ dtype, data, shape, ...(sparse === undefined ? {} : { sparse }) });
