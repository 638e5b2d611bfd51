export type { SamplerSourceClient } from './models/ModelShelf.js';
export { serveSampler, type ServedGateway, type ServedSampler, type ServeOptions } from './serveSampler.js';
