export * from './client.js';
export {
  type Dashboard,
  type DashboardOptions,
  type DashboardSource,
  type SampleToShow,
  serveDashboard,
  type ShowSamplesOptions,
} from './serveDashboard.js';
