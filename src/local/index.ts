/**
 * The embedded service: a small model that really trains, behind the real protocol.
 *
 * @module tinker-rx/local
 */
export { LocalTinker } from './localTinker.js';
export type { LocalTinkerOptions } from './options.js';
export type { Dials, Latency, PausedState } from './dials/dials.js';
export type { Fault, FaultPlan, FaultRule } from './dials/faults.js';
export type { QuotaLimits, Quotas } from './dials/quota.js';
export type { SeenRequest, SeenResponse } from './http/seen.js';
