/**
 * Every name of a span, a span event and an attribute. Those that begin with `gen_ai.` are of OpenTelemetry's conventions for
 * generative models.
 */

export const SPAN = {
  run: 'tinker.run',
  step: 'tinker.step',
  rollout: 'tinker.rollout',
  sample: 'tinker.sample',
  /** Requests of training, by their type: `tinker.forward_backward`, `tinker.optim_step`, … */
  request: (type: string): string => `tinker.${type.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toLowerCase()}`,
} as const;

/** The names of the events on spans. */
export const SPAN_EVENT = {
  queueState: 'tinker.wait.queue',
  retry: 'tinker.wait.retry',
  dispatchPaused: 'tinker.wait.dispatch',
  billingPaused: 'tinker.wait.billing',
  resubmitted: 'tinker.wait.resubmit',
  rlWaiting: 'tinker.wait.rl',
  heartbeatMissed: 'tinker.heartbeat_missed',
  checkpoint: 'tinker.checkpoint',
  policy: 'tinker.policy_published',
  rolloutFailed: 'tinker.rollout_failed',
} as const;

/** The names of the attributes on spans. */
export const ATTRIBUTE = {
  target: 'tinker.target',
  requestId: 'tinker.request_id',
  step: 'tinker.step.index',
  metric: (name: string): string => `tinker.metric.${name}`,
  order: 'tinker.group.order',
  rollout: 'tinker.rollout.index',
  attempt: 'tinker.attempt',
  reward: 'tinker.rollout.reward',
  turns: 'tinker.rollout.turns',
  tokens: 'tinker.rollout.tokens',
  sample: 'tinker.sample.index',
  policyStep: 'tinker.policy.step',
  bytes: 'tinker.request.bytes',
  path: 'tinker.checkpoint.path',
  state: 'tinker.queue.state',
  reason: 'tinker.wait.reason',
  waitedMs: 'tinker.wait.ms',
  waitsFor: 'tinker.wait.for',
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  errorType: 'error.type',
} as const;
