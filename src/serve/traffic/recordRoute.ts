import type { Gateway } from '../http/Endpoint.js';
import type { Route } from '../http/GatewayServer.js';
import { openAiRefusal } from '../http/GatewayError.js';
import type { CallRecorder } from './CallRecorder.js';
import { feedbackTo, recordAnswers } from './recordAnswers.js';
import { RECORDED_PATHS } from './readCall.js';

interface Recording {
  readonly route: Route | undefined;
  readonly gateway: Gateway;
  readonly recorder: CallRecorder;
}

/** A route whose calls are written down; and the one that takes feedback. */
export function recordRoute(method: string, path: string, { route, gateway, recorder }: Recording): Route | undefined {
  if (method !== 'POST') return route;
  if (path === '/feedback' || path === '/v1/feedback')
    return { name: '/feedback', endpoint: feedbackTo(recorder), gateway, refusal: openAiRefusal };
  const api = RECORDED_PATHS.get(path);
  if (route === undefined || api === undefined) return route;
  return { ...route, endpoint: recordAnswers(route.endpoint, api, recorder) };
}
