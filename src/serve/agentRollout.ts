import { concatMap, defer, finalize, from, map, type ObservableInput } from 'rxjs';
import { toObservable } from '../support/toObservable.js';
import type { Renderer } from '../chat/renderers/core/Renderer.js';
import type { SamplingClient } from '../client/SamplingClient.js';
import { numberOf, REWARDS } from '../rl/rewards/numberOf.js';
import type { Rollout, RolloutHook } from '../rl/sampling/rollout.js';
import { bareGateway } from './bareGateway.js';
import { GatewayError } from './http/GatewayError.js';
import type { RecordedSession } from './record/recordSession.js';
import { startGateway, type GatewayOptions, type ServedGateway } from './startGateway.js';

/** Where an agent finds its model. */
export interface AgentEndpoint {
  /** For OpenAI's clients and the AI SDK's OpenAI-compatible provider. */
  readonly baseURL: string;
  /** For Anthropic's clients. */
  readonly url: string;
  /** The key the agent must send: it identifies the rollout. */
  readonly apiKey: string;
  /** The name to give as `model`; any other works as well. */
  readonly model: string;
  /** Aborted when the rollout is no longer needed. */
  readonly signal: AbortSignal;
  /** The rollout's seed. */
  readonly seed: number;
}

/** What came of it: a reward, or a reward with what else is worth knowing. `true` is 1 and `false` is 0. */
export type AgentResult = number | boolean | Omit<Rollout, 'turns'>;

/** Options of `agentRollout`. */
export interface AgentRolloutOptions {
  /** Writes and reads the conversations of the model. */
  readonly renderer: Renderer;
  /** Maximum tokens per request, also used if the agent sets no limit. Default 1024. */
  readonly maxTokens?: number;
  /** Where its gateway listens, for agents on other machines. Default: any free port of this machine only. */
  readonly gateway?: Pick<GatewayOptions, 'host' | 'port' | 'allowedHosts'>;
}

const MODEL = 'policy';

/**
 * An agent written against OpenAI's or Anthropic's API, or the AI SDK, as a rollout: it is given an address, calls it as
 * it calls any model, and what was sampled is recorded as exact ids. What it returns is the reward.
 *
 * ```ts
 * const agent = agentRollout(async ({ baseURL, apiKey, model }, task: Task) => {
 *   const provider = createOpenAICompatible({ name: 'policy', baseURL, apiKey });
 *   const { text } = await generateText({ model: provider.chatModel(model), prompt: task.question, tools });
 *   return text === task.answer ? 1 : 0;
 * }, { renderer });
 * ```
 * A history that the agent sends back is mapped to the ids that were sampled; one that it edited begins a new branch,
 * counted in the metric `agent/branches`. Listens on this machine while rollouts run, and only then. A rollout whose
 * agent throws, or never calls its model, fails with that.
 */
export function agentRollout<T>(
  run: (endpoint: AgentEndpoint, task: T) => ObservableInput<AgentResult> | AgentResult,
  { renderer, maxTokens = 1024, gateway: address = {} }: AgentRolloutOptions,
): RolloutHook<T, SamplingClient> {
  const listening = new SharedGateway(maxTokens, address);
  return (task, policy, { signal, seed }) =>
    from(listening.acquire()).pipe(
      concatMap((gateway) => {
        const session = gateway.record(policy, renderer);
        const { baseURL, url, apiKey } = session;
        return defer(() =>
          toObservable<AgentResult>(run({ baseURL, url, apiKey, model: MODEL, signal, seed }, task)),
        ).pipe(
          map((result) => toRollout(result, session)),
          finalize(() => session.close()),
        );
      }),
      finalize(() => listening.release()),
    );
}

function toRollout(result: AgentResult, { turns, branches }: RecordedSession): Rollout {
  if (turns.length === 0) throw new Error('the agent ended without asking its model for anything');
  const isPlain = typeof result !== 'object' || result === null || !('reward' in result);
  const { metrics, ...rest }: Omit<Rollout, 'turns'> = isPlain ? { reward: result as number } : result;
  return {
    ...rest,
    reward: numberOf(rest.reward, 'the reward of an agent', REWARDS),
    turns: [...turns],
    metrics: { 'agent/branches': branches, 'agent/turns': turns.length, ...metrics },
  };
}

/** One gateway for all rollouts that run at the same time. */
class SharedGateway {
  #users = 0;
  #gateway: Promise<ServedGateway> | undefined;

  constructor(
    private readonly maxTokens: number,
    private readonly address: GatewayOptions,
  ) {}

  acquire(): Promise<ServedGateway> {
    this.#users++;
    return (this.#gateway ??= this.#start());
  }

  async #start(): Promise<ServedGateway> {
    const { gateway, close } = bareGateway({
      find: () => Promise.reject(new GatewayError(404, 'this address belongs to no rollout that is running')),
      mainName: MODEL,
      maxTokens: this.maxTokens,
    });
    const { served } = await startGateway({
      ...{ gateway, close, names: () => [MODEL], reachable: () => true },
      options: { ...this.address, maxRequests: 100_000 },
    });
    return served;
  }

  release(): void {
    if (--this.#users > 0) return;
    const closing = this.#gateway;
    this.#gateway = undefined;
    void closing?.then((gateway) => gateway.close()).catch(() => undefined);
  }
}
