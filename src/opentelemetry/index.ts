/**
 * Traces of a client's calls for OpenTelemetry.
 *
 * @module tinker-rx/opentelemetry
 */
import '../support/checkNode.js';
export { ATTRIBUTE, SPAN, SPAN_EVENT } from './names.js';
export { toOpenTelemetry, type OpenTelemetryOptions } from './toOpenTelemetry.js';
