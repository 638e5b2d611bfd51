/**
 * A live page over events, steps and samples.
 *
 * @module tinker-rx/dashboard
 */
export * from './client.js';
export {
  type Dashboard,
  type DashboardOptions,
  type DashboardSource,
  type SampleToShow,
  serveDashboard,
  type ShowSamplesOptions,
} from './serveDashboard.js';
