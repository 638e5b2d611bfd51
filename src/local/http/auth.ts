import { createHmac, randomBytes } from 'node:crypto';
import { bearerOf, sameSecret } from '../../support/http/access.js';
import type { RequestContext } from './requestContext.js';

/** What a token says about who holds it. */
export interface Claims {
  readonly iss: string;
  readonly sub: string;
  readonly org_id: string;
  readonly email: string;
  readonly iat: number;
  readonly exp: number;
}

/** The one user of a local service. */
export const LOCAL_USER = 'tml:organization_user:local';
export const LOCAL_ORGANIZATION = 'local';
export const LOCAL_EMAIL = 'local@localhost';

export const randomApiKey = (): string => `tml-${randomBytes(24).toString('base64url')}`;

/** Knows the API key, and gives out and checks the short-lived tokens it can be exchanged for. */
export class Authenticator {
  readonly #apiKey: string;
  readonly #secret = randomBytes(32);
  #revoked = false;

  constructor(
    apiKey: string,
    private readonly tokenTtlMs: number,
    private readonly now: () => number,
  ) {
    this.#apiKey = apiKey;
  }

  /** Whether a credential is the key or a token that is still good. */
  accepts(credential: string | undefined): boolean {
    if (credential === undefined || this.#revoked) return false;
    return sameSecret(credential, this.#apiKey) || this.claimsOf(credential) !== undefined;
  }

  /** From now on nothing is accepted, as after deleting the key at the hosted service. */
  revoke(): void {
    this.#revoked = true;
  }

  issueToken(): string {
    const issued = Math.floor(this.now() / 1000);
    const claims: Claims = {
      iss: 'passport-local',
      sub: LOCAL_USER,
      org_id: LOCAL_ORGANIZATION,
      email: LOCAL_EMAIL,
      iat: issued,
      exp: issued + Math.ceil(this.tokenTtlMs / 1000),
    };
    const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`;
    return `${signed}.${this.sign(signed)}`;
  }

  /** The claims of a token that this service signed and that has not expired. */
  claimsOf(token: string): Claims | undefined {
    const [header, payload, signature, ...rest] = token.split('.');
    if (header === undefined || payload === undefined || signature === undefined || rest.length > 0) return undefined;
    if (!sameSecret(signature, this.sign(`${header}.${payload}`))) return undefined;
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as Claims;
    return claims.exp * 1000 > this.now() ? claims : undefined;
  }

  /** A signature nobody else can make, for tokens and file URLs. */
  sign(text: string): string {
    return createHmac('sha256', this.#secret).update(text).digest('base64url');
  }
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** The credential a request carries: `X-API-Key`, or a bearer token. */
export function credentialOf(context: Pick<RequestContext, 'header'>): string | undefined {
  return context.header('x-api-key') ?? bearerOf(context.header('authorization'));
}
