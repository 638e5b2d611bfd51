/**
 * Streams into the outside world: futures, async iterables, native streams, JSONL, run logs, a progress bar, server-sent events.
 *
 * @module tinker-rx/sinks
 */
import '../support/checkNode.js';
export { metricsLog, type MetricsLogOptions } from './metricsLog.js';
export { progressBar, type ProgressBarOptions, type ProgressStream } from './progressBar.js';
export { tensorBoardLog, type TensorBoardLogOptions } from './tensorBoardLog.js';
export { toAsyncIterable, type ToAsyncIterableOptions } from './toAsyncIterable.js';
export { toDeadLetters, type ToDeadLettersOptions } from './toDeadLetters.js';
export { toFuture } from './toFuture.js';
export { toJsonl, type ToJsonlOptions } from './toJsonl.js';
export { toReadableStream } from './toReadableStream.js';
export { type ServerSentEventsSink, toServerSentEvents, type ToServerSentEventsOptions } from './toServerSentEvents.js';
export { wandbLog, type WandbLogOptions } from './wandbLog.js';
