import { afterEach } from 'vitest';
import { serveSampler, type ServedGateway, type ServeOptions } from '../../../src/serve/index.js';
import { scripted } from '../support/scriptedSampler.js';
import { thinking } from '../support/thinkingRenderer.js';

type Script = ReturnType<typeof scripted>;

export const model = 'test/model';
export const user = (content: string) => [{ role: 'user' as const, content }];

const open: ServedGateway[] = [];

/** Closes what {@link serving} started, after each test of the file that calls this. */
export function closeAfterEach(): void {
  afterEach(async () => {
    await Promise.all(open.splice(0).map((gateway) => gateway.close()));
  });
}

/** A gateway over a scripted sampler; by default one that thinks. */
export async function serving(
  replies: Parameters<typeof scripted>[0],
  options: ServeOptions = {},
  script: Parameters<typeof scripted>[1] = { renderer: thinking },
): Promise<Script & ServedGateway & { post: ReturnType<typeof poster> }> {
  const made = scripted(replies, script);
  const gateway = await serveSampler(made.sampler, options);
  open.push(gateway);
  return Object.assign(gateway, made, { post: poster(gateway) });
}

/** Asks without any client, as a client would. */
const poster =
  ({ url, apiKey }: ServedGateway) =>
  async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json') === true;
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: (isJson ? JSON.parse(text) : undefined) as never,
    };
  };
