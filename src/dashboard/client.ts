export { foldDashboard, type FoldDashboardOptions } from './client/foldDashboard.js';
export { fromDashboard, type FromDashboardOptions } from './client/fromDashboard.js';
export { align, type Aligned, type Curve, smooth } from './state/align.js';
export type {
  BudgetName,
  BudgetUse,
  Calls,
  Change,
  Columns,
  DashboardEvent,
  DashboardGroup,
  DashboardMessage,
  DashboardSample,
  DashboardTry,
  Failure,
  Flow,
  Load,
  Note,
  OpenRequest,
  PartKind,
  Pause,
  Rows,
  RunStatus,
  Standing,
} from './state/changes.js';
export { DashboardState, RunState } from './state/DashboardState.js';
export { EventState } from './state/EventState.js';
export { Groups } from './state/Groups.js';
export { Ring } from './state/Ring.js';
export { type Row, Series } from './state/Series.js';
