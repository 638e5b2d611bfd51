export { after, dropped, json, protobuf, refusal, text, type Answer } from './answers.js';
export type { FakeWork } from './fakeEndpoints.js';
export { FakeRequest } from './FakeRequest.js';
export {
  fakeTransport,
  type FakeTransport,
  type FakeTransportOptions,
  type Reply,
  type Script,
} from './fakeTransport.js';
export { VirtualClock } from './VirtualClock.js';
