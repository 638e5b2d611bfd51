import type { Route } from '../http/router.js';
import type { LocalService } from '../service/localService.js';
import { adminRoutes } from './admin.js';
import { checkpointSearchRoutes } from './checkpointSearch.js';
import { checkpointRoutes } from './checkpoints.js';
import { customLossRoutes } from './customLoss.js';
import { fileRoutes } from './files.js';
import { futureRoutes } from './futures.js';
import { modelRoutes } from './models.js';
import { samplingRoutes } from './sampling.js';
import { sessionRoutes } from './session.js';
import { sessionRecordRoutes } from './sessions.js';
import { skyrlRoutes } from './skyrlRoutes.js';
import { trainingRoutes } from './training.js';
import { trainingRunRoutes } from './trainingRuns.js';
import { uploadRoutes } from './uploads.js';
import { weightRoutes } from './weights.js';

/** Every endpoint of the service. */
export function routesOf(service: LocalService): Route[] {
  const routes = tinkerRoutes(service);
  return service.options.dialect === 'skyrl' ? skyrlRoutes(service, routes) : routes;
}

const tinkerRoutes = (service: LocalService): Route[] => [
  ...sessionRoutes(service),
  ...modelRoutes(service),
  ...trainingRoutes(service),
  ...customLossRoutes(service),
  ...weightRoutes(service),
  ...samplingRoutes(service),
  ...futureRoutes(service),
  ...trainingRunRoutes(service),
  ...checkpointSearchRoutes(service),
  ...checkpointRoutes(service),
  ...sessionRecordRoutes(service),
  ...adminRoutes(service),
  ...fileRoutes(service),
  ...uploadRoutes(service),
];
