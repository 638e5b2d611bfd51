export { ByteTokenizer } from './ByteTokenizer.js';
export type { HubEvent } from './hub/HubEvent.js';
export { hubEvents$ } from './hub/hubEvents.js';
export { downloadHubFile, hubFile } from './hub/hubFile.js';
export type { HubOptions } from './hub/HubSettings.js';
export { HuggingFaceTokenizer } from './HuggingFaceTokenizer.js';
export { inklingTokenizer } from './tiktoken/inkling.js';
export { kimiTokenizer, type KimiFiles } from './tiktoken/kimi.js';
export {
  loadTokenizer,
  registerTokenizer,
  tokenizerForModel,
  tokenizerFromHub,
  tokenizerIdFor,
} from './loadTokenizer.js';
export { tokenizerFromFolder } from './readFolder.js';
export { TiktokenTokenizer, type TiktokenFields } from './tiktoken/TiktokenTokenizer.js';
export type { DecodeOptions, Tokenizer } from './Tokenizer.js';
export { TokenizerError } from './TokenizerError.js';
export type { AddedTokenJson, TokenizerConfigJson, TokenizerFiles, TokenizerJson } from './tokenizerFiles.js';
export { TokenizerPool, type TokenizerPoolOptions } from './pool/TokenizerPool.js';
