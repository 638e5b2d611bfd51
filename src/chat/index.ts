export * from './datum/index.js';
export * from './models/index.js';
export * from './renderers/index.js';
export * from './tokenizer/index.js';
