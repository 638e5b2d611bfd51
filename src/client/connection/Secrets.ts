import type { TransportResponse } from '../../transport/Transport.js';
import { plainText } from '../../support/plainText.js';

const SECRET_HEADER = /auth|key|secret|token|cookie|pass|credential|signature|session|access|private/i;
const SHORTEST = 8;
const MOST = 100;
const REDACTED = '[redacted]';
const LONGEST_SAID = 4000;
/** A scheme and what follows it: `Bearer abc`. */
const SCHEME = /^[A-Za-z]+ +(\S.*)$/;
const utf8 = new TextDecoder();

/** Whether a header of this name holds a secret. */
export const isSecretHeader = (name: string): boolean => SECRET_HEADER.test(name);

/** Secrets that a client has sent. When a service echoes one, it must not appear in errors or events. */
export class Secrets {
  readonly #known = new Set<string>();
  #last = '';

  add(secret: string): void {
    // Every request sends the same token, so this comparison is the usual cost.
    if (secret === this.#last) return;
    this.#last = secret;
    if (secret.length < SHORTEST) return;
    this.#known.add(secret);
    if (this.#known.size > MOST) this.#known.delete(this.#known.values().next().value!);
  }

  addHeaders(headers: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(headers)) {
      if (!isSecretHeader(name) || name === 'x-idempotency-key') continue;
      this.add(value);
      // A server may say back the credential without its scheme.
      const credential = SCHEME.exec(value)?.[1];
      if (credential !== undefined) this.add(credential);
    }
  }

  /** What a server says, to be shown: without any secret, and without anything that steers a terminal. */
  clean(text: string): string {
    return this.redact(plainText(text.slice(0, LONGEST_SAID)));
  }

  /** The text without any secret. */
  redact(text: string): string {
    let redacted = text;
    for (const secret of this.#known) redacted = redacted.replaceAll(secret, REDACTED);
    return redacted;
  }

  /** The response without any secret in its headers or body. */
  redactResponse(response: TransportResponse): TransportResponse {
    const { status, headers, body } = response;
    const text = utf8.decode(body);
    const redacted = this.redact(text);
    return {
      status,
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, this.redact(value)])),
      body: redacted === text ? body : new TextEncoder().encode(redacted),
    };
  }
}
