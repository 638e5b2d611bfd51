import type { Engine } from './engine/index.js';

/** What the service needs of the engine; tests may put something smaller in its place. */
export type EnginePort = { readonly [K in keyof Engine]: Engine[K] };
