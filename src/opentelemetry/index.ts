export { ATTRIBUTE, SPAN, SPAN_EVENT } from './names.js';
export { toOpenTelemetry, type OpenTelemetryOptions } from './toOpenTelemetry.js';
