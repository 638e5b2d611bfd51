/**
 * A live page over events, steps and samples.
 *
 * @module tinker-rx/dashboard
 */
import '../support/checkNode.js';
export * from './client.js';
export {
  type Dashboard,
  type DashboardOptions,
  type DashboardSource,
  type SampleToShow,
  serveDashboard,
  type ShowSamplesOptions,
  type ShowStepsOptions,
} from './serveDashboard.js';
