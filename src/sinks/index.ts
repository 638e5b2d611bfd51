export { metricsLog, type MetricsLogOptions } from './metricsLog.js';
export { progressBar, type ProgressBarOptions, type ProgressStream } from './progressBar.js';
export { toAsyncIterable, type ToAsyncIterableOptions } from './toAsyncIterable.js';
export { toFuture } from './toFuture.js';
export { toJsonl, type ToJsonlOptions } from './toJsonl.js';
export { type ServerSentEventsSink, toServerSentEvents, type ToServerSentEventsOptions } from './toServerSentEvents.js';
