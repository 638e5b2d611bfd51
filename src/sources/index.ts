/**
 * The outside world as streams: files, chat data, preferences, paged lists, server-sent events, HTTP, native streams, data in memory.
 *
 * @module tinker-rx/sources
 */
import '../support/checkNode.js';
export { fromArray } from './fromArray.js';
export { fromAsyncIterable } from './fromAsyncIterable.js';
export { fromConversations } from './fromConversations.js';
export { type CsvOptions, fromCsv } from './fromCsv.js';
export { fromHttp, type FromHttpOptions } from './fromHttp.js';
export { fromIterable } from './fromIterable.js';
export { fromJson } from './fromJson.js';
export { fromJsonl } from './fromJsonl.js';
export { fromNative, type NativeObservable } from './fromNative.js';
export { fromPages, type PageRequest, type PagesOptions } from './fromPages.js';
export { fromParquet, type ParquetOptions } from './fromParquet.js';
export { fromPreferences } from './fromPreferences.js';
export {
  fromRecorded,
  type RecordedCall,
  type RecordedFeedback,
  type RecordedOptions,
  type RecordedTask,
} from './fromRecorded.js';
export { fromReadableStream } from './fromReadableStream.js';
export { fromRowBatches, type RowBatchesOptions } from './fromRowBatches.js';
export {
  fromServerSentEvents,
  type ServerSentEvent,
  ServerSentEventsError,
  type ServerSentEventsOptions,
} from './fromServerSentEvents.js';
export { fromStdin, type StdinOptions } from './fromStdin.js';
export { redeliver, type StoredLetter } from './redeliver.js';
export { resumeFrom, type ResumeFromOptions, type ResumePoint } from './resumeFrom.js';
export { type FieldEvent, type RowEvent, type RowOptions, type SourceEvent } from './RowOptions.js';
export { type RowSchema, type StandardResult, type StandardSchema } from './RowSchema.js';
export { sampleInPieces, type SampleInPiecesOptions, type SamplePiece } from '../client/sampling/sampleInPieces.js';
export { BadRowError, SourceError } from './SourceError.js';
export {
  type Conversation,
  type ConversationMessage,
  type ConversationToolCall,
  toConversation,
} from '../chat/data/toConversation.js';
export { type Preference, toPreference } from '../chat/data/toPreference.js';
