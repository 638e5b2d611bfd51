export { ByteTokenizer } from './ByteTokenizer.js';
export { HuggingFaceTokenizer } from './HuggingFaceTokenizer.js';
export { inklingTokenizer } from './inkling.js';
export { kimiTokenizer, type KimiFiles } from './kimi.js';
export { TiktokenTokenizer, type TiktokenFields } from './TiktokenTokenizer.js';
export type { DecodeOptions, Tokenizer } from './Tokenizer.js';
export { TokenizerError } from './TokenizerError.js';
export type { AddedTokenJson, TokenizerConfigJson, TokenizerFiles, TokenizerJson } from './tokenizerFiles.js';
export { tokenizerIdFor } from './tokenizerIdFor.js';
