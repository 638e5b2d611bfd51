/*
 * The two parts of undici that a client uses, from their own files: the package's entry also loads fetch, WebSocket, caches
 * and mocks, 88 more modules and two thirds of its loading time.
 */
// @ts-expect-error the types are those of the package's entry
import poolFile from 'undici/lib/dispatcher/pool.js';
// @ts-expect-error the same
import proxyAgentFile from 'undici/lib/dispatcher/env-http-proxy-agent.js';
import type * as undici from 'undici';

export const Pool = poolFile as typeof undici.Pool;
export const EnvHttpProxyAgent = proxyAgentFile as typeof undici.EnvHttpProxyAgent;
