import { Agent, request } from 'undici';
import { Secrets } from '../client/connection/Secrets.js';
import type { SamplingClient } from '../client/SamplingClient.js';
import type { RolloutHook } from '../rl/sampling/rollout.js';
import { isRecord } from '../support/isRecord.js';
import { messageOf } from '../support/messageOf.js';
import { agentRollout, type AgentResult, type AgentRolloutOptions } from './agentRollout.js';

/** Options of `remoteRollout`. */
export interface RemoteRolloutOptions extends AgentRolloutOptions {
  /** Sent with every request: a key of the agent's, for instance. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Origin under which the agent reaches this machine, such as `http://10.0.0.5:8080`, if it runs on another one; then give `gateway` a
   * `host` and a `port`, too. Default: the address of the gateway, for agents on this machine.
   */
  readonly publicUrl?: string;
}

/**
 * An agent behind an HTTP address as a rollout, in any language: it is told its task and where its model is, and reports a reward.
 *
 * ```ts
 * const agent = remoteRollout<Task>('http://127.0.0.1:9000/rollout', { renderer });
 * ```
 * The agent receives `POST { task, base_url, anthropic_base_url, api_key, model, seed }`, calls its model there, and answers
 * `{ reward, metrics?, tags? }`. See docs/remote-rollouts.md for the whole protocol. A status other than 200, and an answer without a reward, fail
 * that rollout; so does an agent that never calls its model. A rollout that is no longer needed ends the request.
 */
export function remoteRollout<T>(
  url: string | URL,
  { headers = {}, publicUrl, ...options }: RemoteRolloutOptions,
): RolloutHook<T, SamplingClient> {
  const address = (local: string): string => (publicUrl === undefined ? local : withOrigin(local, publicUrl));
  // The agent may take as long as the rollout may; the loop has the deadline.
  const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
  return agentRollout<T>(async ({ baseURL, url: anthropic, apiKey, model, signal, seed }, task) => {
    const told = { task, base_url: address(baseURL), anthropic_base_url: address(anthropic), api_key: apiKey };
    const secrets = new Secrets();
    secrets.add(apiKey);
    secrets.addHeaders(headers);
    try {
      const { statusCode, body } = await request(url, {
        ...{ method: 'POST', signal, dispatcher },
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ ...told, model, seed }),
      });
      return resultOf(statusCode, secrets.redact(await body.text()));
    } catch (error) {
      if (error instanceof BadAnswer || signal.aborted) throw error;
      // The address may hold a key.
      throw new Error(`the agent at ${new URL(url).host} gave no answer: ${messageOf(error)}`, { cause: error });
    }
  }, options);
}

/** What an agent answered, and should not have. */
class BadAnswer extends Error {}

const withOrigin = (local: string, origin: string): string =>
  new URL(origin).origin + new URL(local).pathname.replace(/\/$/, '');

/** @throws BadAnswer saying what the agent sent instead */
function resultOf(status: number, text: string): AgentResult {
  if (status !== 200) throw new BadAnswer(`the agent answered with status ${status}: ${text.slice(0, 200)}`);
  const found = parsed(text);
  if (!isRecord(found) || (typeof found['reward'] !== 'number' && typeof found['reward'] !== 'boolean'))
    throw new BadAnswer('the agent reported no reward: it must answer { "reward": <number> }');
  const { reward, metrics = {}, tags = [] } = found as { reward: number; metrics?: unknown; tags?: unknown };
  return { reward, metrics: metricsIn(metrics), tags: tagsIn(tags) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // Python's json module writes these.
    const odd = /:\s*-?(NaN|Infinity)\b/.exec(text)?.[1];
    const reason = odd === undefined ? messageOf(error) : `it has ${odd}, which JSON does not know`;
    throw new BadAnswer(`the agent's answer is not JSON: ${reason}`, { cause: error });
  }
}

function metricsIn(metrics: unknown): Readonly<Record<string, number>> {
  if (!isRecord(metrics) || Array.isArray(metrics)) throw new BadAnswer('metrics must be numbers by name');
  const wrong = Object.keys(metrics).find((name) => typeof metrics[name] !== 'number');
  if (wrong !== undefined) throw new BadAnswer(`metrics must be numbers by name: ${wrong} is not`);
  return metrics as Readonly<Record<string, number>>;
}

function tagsIn(tags: unknown): readonly string[] {
  if (!Array.isArray(tags) || !tags.every((tag) => typeof tag === 'string'))
    throw new BadAnswer('tags must be a list of texts');
  return tags;
}
