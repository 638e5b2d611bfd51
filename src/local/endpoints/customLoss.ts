import { CreateCustomLossRequest } from '../../wire/index.js';
import { lossFunctionOf } from './lossFunction.js';
import { Program } from '../../losses/graph/program.js';
import type { LossConfig, LossFunction } from '../engine/types.js';
import { HttpError } from '../http/httpError.js';
import { post, type Route } from '../http/router.js';
import { toFailure, UserError } from '../queue/failure.js';
import type { LocalService } from '../service/localService.js';
import { digestOf, promiseOf } from './promise.js';
import { flagsOf } from './session.js';

/** Uploading a traced loss, if the flag `custom_loss_server_side` is on. */
export const customLossRoutes = (service: LocalService): Route[] => [
  post('create_custom_loss', (context) => {
    if (!flagsOf(service).customLossServerSide) throw new HttpError(404, 'custom losses do not run on this server');
    const { sessionId, customLossSeqId, inputs, graph } = context.decode(CreateCustomLossRequest);
    service.sessions.use(sessionId);
    const lossId = `${sessionId}:loss:${customLossSeqId}`;
    const digest = digestOf(context);
    const known = service.customLosses.get(lossId);
    if (known !== undefined) {
      if (known.digest !== digest) throw new HttpError(409, `custom_loss_seq_id ${customLossSeqId} was already used`);
      return promiseOf(service, known.created);
    }
    const created = service.futures.create({ requestType: 'CreateCustomLoss', sessionId });
    try {
      const program = new Program(inputs, graph.nodes);
      service.customLosses.set(lossId, { digest, created, sessionId, loss: lossFunctionOf(program, inputs) });
      created.resolve({ type: 'json', value: { loss_id: lossId, type: 'create_custom_loss' } });
    } catch (error) {
      created.reject(toFailure(error));
    }
    return promiseOf(service, created);
  }),
];

/** The uploaded loss that a pass names. @throws UserError if its session has no such loss. */
export function findCustomLoss(
  service: LocalService,
  sessionId: string,
  { loss_id: lossId }: LossConfig,
): LossFunction {
  const found = typeof lossId === 'string' ? service.customLosses.get(lossId) : undefined;
  if (found?.sessionId !== sessionId) {
    throw new UserError('loss_fn "custom" needs the loss_id of a loss that this session created');
  }
  return found.loss;
}
