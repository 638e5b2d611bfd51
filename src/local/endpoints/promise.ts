import { createHash } from 'node:crypto';
import { json, type Reply } from '../http/reply.js';
import type { RequestContext } from '../http/requestContext.js';
import type { LocalFuture } from '../queue/localFuture.js';
import type { LocalService } from '../service/localService.js';

/** The answer to accepted work: the promise's id, and what is known already. */
export const promiseOf = ({ dialect }: LocalService, future: LocalFuture): Reply => json(dialect.promise(future));

/** Tells one request from another by what it says: endpoint and body. */
export const digestOf = ({
  endpoint,
  body,
}: Pick<RequestContext, 'endpoint'> & { readonly body: Uint8Array }): string =>
  createHash('sha256').update(endpoint).update('\0').update(body).digest('base64url');
