import type { Authenticator } from './auth.js';
import { sameSecret } from '../../support/http/access.js';
import { HttpError } from './httpError.js';
import type { RequestContext } from './requestContext.js';

export const FILES = 'files';

/** What a signed URL opens. */
export type SignedTarget =
  | { readonly kind: 'checkpoint'; readonly path: string; readonly file: string }
  | { readonly kind: 'upload'; readonly uploadId: string; readonly file: string }
  | { readonly kind: 'archive'; readonly path: string; readonly file: string }
  | { readonly kind: 'trace'; readonly sessionId: string; readonly file: string };

/** URLs of this server that need no key and stop working after a while. */
export class SignedUrls {
  constructor(
    private readonly auth: Authenticator,
    private readonly ttlMs: number,
    private readonly now: () => number,
  ) {}

  get expiresAt(): number {
    return this.now() + this.ttlMs;
  }

  sign(origin: string, target: SignedTarget, expiresAt = this.expiresAt): string {
    const token = Buffer.from(JSON.stringify(target)).toString('base64url');
    const signature = this.auth.sign(`${token}.${expiresAt}`);
    const file = encodeURIComponent(target.file);
    return `${origin}/api/v1/${FILES}/${token}/${file}?expires=${expiresAt}&signature=${signature}`;
  }

  /** Whether a request that has not been routed yet is for a URL that was signed here. */
  isSigned({ endpoint, query }: Pick<RequestContext, 'endpoint' | 'query'>): boolean {
    const [folder, token = ''] = endpoint.split('/');
    const [expires = '', signature = ''] = [query.get('expires') ?? '', query.get('signature') ?? ''];
    return folder === FILES && sameSecret(signature, this.auth.sign(`${token}.${expires}`));
  }

  /** @throws HttpError 403 for a URL that was not signed here or has expired. */
  open(context: RequestContext): SignedTarget {
    const token = context.param('token');
    const expires = context.query.get('expires') ?? '';
    const signature = context.query.get('signature') ?? '';
    if (!sameSecret(signature, this.auth.sign(`${token}.${expires}`))) throw new HttpError(403, 'not a signed URL');
    if (!(Number(expires) > this.now())) throw new HttpError(403, 'this URL has expired');
    return JSON.parse(Buffer.from(token, 'base64url').toString('utf8')) as SignedTarget;
  }
}
