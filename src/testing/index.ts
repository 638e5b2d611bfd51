/**
 * What tests of your pipelines need: a scripted transport and a virtual clock.
 *
 * @module tinker-rx/testing
 */
import '../support/checkNode.js';
export { after, dropped, json, protobuf, refusal, text, type Answer } from './answers.js';
export type { FakeSampleRequest, FakeWork } from './fakeEndpoints.js';
export { FakeRequest } from './FakeRequest.js';
export { datum, type FakeSampler, type FakeTrainer, fakeTrainer, type FakeTrainerOptions } from './fakeTrainer.js';
export {
  fakeTransport,
  type FakeTransport,
  type FakeTransportOptions,
  type Reply,
  type Script,
} from './fakeTransport.js';
export { firehose } from './firehose.js';
export { gated } from './gated.js';
export { type ContractCase, type OperatorContract, operatorContract } from './operatorContract.js';
export { runMarbles, type RunMarblesOptions } from './runMarbles.js';
export type { ScriptPath } from './internal/scriptPaths.js';
export { VirtualClock } from './VirtualClock.js';
