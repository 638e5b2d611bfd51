export type { DecodeOptions, Tokenizer } from './Tokenizer.js';
