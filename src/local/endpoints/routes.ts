import type { Route } from '../http/router.js';
import type { LocalService } from '../service/localService.js';
import { futureRoutes } from './futures.js';
import { modelRoutes } from './models.js';
import { samplingRoutes } from './sampling.js';
import { sessionRoutes } from './session.js';
import { trainingRoutes } from './training.js';
import { weightRoutes } from './weights.js';

/** Every endpoint of the service. */
export const routesOf = (service: LocalService): Route[] => [
  ...sessionRoutes(service),
  ...modelRoutes(service),
  ...trainingRoutes(service),
  ...weightRoutes(service),
  ...samplingRoutes(service),
  ...futureRoutes(service),
];
