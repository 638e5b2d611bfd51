/**
 * Tokenizers and renderers: conversations to tokens and back.
 *
 * @module tinker-rx/chat
 */
import '../support/checkNode.js';
export * from './datum/index.js';
export * from './models/index.js';
export * from './renderers/index.js';
export * from './tokenizer/index.js';
