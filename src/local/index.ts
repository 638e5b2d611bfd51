/**
 * The embedded service: a small model that really trains, behind the real protocol.
 *
 * @module tinker-rx/local
 */
import '../support/checkNode.js';
export { LocalTinker } from './localTinker.js';
export type { LocalTinkerOptions } from './options.js';
export type { LoadProgress } from './engine/loadModel.js';
export type { ModelSource } from './weights/openModel.js';
export type { Controls, Latency, PausedState } from './controls/controls.js';
export type { Fault, FaultPlan, FaultRule } from './controls/faults.js';
export type { QuotaLimits, Quotas } from './controls/quota.js';
export type { SeenRequest, SeenResponse } from './http/seen.js';
