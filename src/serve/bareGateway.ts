import { systemUuid } from '../transport/system.js';
import type { Gateway } from './http/Endpoint.js';
import { SchemaChecker } from './json/SchemaChecker.js';
import { ItemStore } from './responses/items.js';

/** A gateway without a sampler, and how to close it: for sessions that bring their own, and for an upstream. */
export function bareGateway(parts: Pick<Gateway, 'find' | 'mainName' | 'maxTokens'>): {
  readonly gateway: Gateway;
  readonly close: () => Promise<void>;
} {
  const checker = new SchemaChecker();
  const gateway: Gateway = {
    ...parts,
    pieceTokens: undefined,
    jsonRetries: 0,
    checkJson: (schema, json) => checker.check(schema, json),
    strict: false,
    items: new ItemStore(),
    nowMs: () => Date.now(),
    newId: systemUuid,
    onReply: () => undefined,
  };
  return { gateway, close: () => checker.close() };
}
