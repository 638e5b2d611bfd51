import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { firstValueFrom } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  CredentialError,
  jwtClaims,
  resolveCommandCredential,
  resolveCredential,
} from '../../../src/transport/auth.js';
import { CredentialStore } from '../../../src/transport/credentials.js';
import { ValidationError } from '../../../src/wire/tinkerError.js';

let folder: string;
let store: CredentialStore;
let empty: CredentialStore;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-'));
  store = new CredentialStore(join(folder, 'credentials.json'));
  empty = new CredentialStore(join(folder, 'none.json'));
  store.addKey('a', { type: 'manual', key: 'tml-stored', name: 'a' });
  store.setDefault('a');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const resolved = (apiKey: string | undefined, environment: Record<string, string | undefined>, from = store) =>
  firstValueFrom(resolveCredential({ isHosted: true, apiKey, environment, store: from }).token());
const COMMAND = 'echo tml-command';

describe('the credential', () => {
  it.each<[string, string | undefined, Record<string, string>, string]>([
    [
      'the argument',
      'tml-argument',
      { TINKER_API_KEY: 'tml-environment', TINKER_CREDENTIAL_CMD: COMMAND },
      'tml-argument',
    ],
    [
      'the environment',
      undefined,
      { TINKER_API_KEY: 'tml-environment', TINKER_CREDENTIAL_CMD: COMMAND },
      'tml-environment',
    ],
    ['the command', undefined, { TINKER_CREDENTIAL_CMD: COMMAND }, 'tml-command'],
    ['the stored key', undefined, {}, 'tml-stored'],
    ['the environment when the argument is empty', '', { TINKER_API_KEY: 'tml-environment' }, 'tml-environment'],
    ['the stored key when all else is empty', '', { TINKER_API_KEY: '', TINKER_CREDENTIAL_CMD: '' }, 'tml-stored'],
    ['a JWT as it is', 'eyJhbGciOiJub25lIn0.e30.x', {}, 'eyJhbGciOiJub25lIn0.e30.x'],
    ['the command when the key is none', 'sk-other', { TINKER_CREDENTIAL_CMD: COMMAND }, 'tml-command'],
  ])('is %s', async (_, apiKey, environment, expected) => {
    expect(await resolved(apiKey, environment)).toBe(expected);
  });

  it.each([
    ['sk-SECRET', "the API key must start with 'tml-'"],
    [' tml-SECRET', "the API key must start with 'tml-'"],
    ['tml-SECRET\n', 'the API key holds a space, a line break or another character that cannot be sent'],
    ['tml-SECRET é', 'the API key holds a space, a line break or another character that cannot be sent'],
  ])('%j is refused without being shown', (apiKey, said) => {
    expect(() => resolveCredential({ isHosted: true, apiKey, environment: {}, store })).toThrow(
      new ValidationError(said),
    );
  });

  it('that is missing is an error that says where to put one', () => {
    expect(() => resolveCredential({ isHosted: true, environment: {}, store: empty })).toThrow(
      /TINKER_API_KEY.*tinker-rx auth login/,
    );
  });

  it('does not show when it is printed', () => {
    const source = resolveCredential({ isHosted: true, apiKey: 'tml-SECRET', environment: {}, store });
    expect(inspect(source, { depth: Infinity, showHidden: true, getters: true })).not.toContain('SECRET');
    expect(JSON.stringify(source)).not.toContain('SECRET');
  });
});

describe('the credential command', () => {
  it('is run each time a token is asked for, and its output trimmed', async () => {
    const source = resolveCredential({
      isHosted: true,
      environment: { TINKER_CREDENTIAL_CMD: 'printf "  tml-%s\\n" "$$"' },
      store,
    });
    expect(source.current()).toBeUndefined();
    const [first, second] = [await firstValueFrom(source.token()), await firstValueFrom(source.token())];
    expect(first).toMatch(/^tml-\d+$/);
    expect(second).not.toBe(first);
  });

  it.each([
    ['true', 'TINKER_CREDENTIAL_CMD printed nothing'],
    ['exit 3', 'TINKER_CREDENTIAL_CMD failed with exit code 3'],
    ['echo SECRET >&2; exit 1', 'TINKER_CREDENTIAL_CMD failed with exit code 1'],
  ])('%s fails without showing what it printed', async (command, said) => {
    const error: unknown = await resolved(undefined, { TINKER_CREDENTIAL_CMD: command }).catch(
      (failure: unknown) => failure,
    );
    expect(error).toBeInstanceOf(CredentialError);
    expect((error as Error).message).toBe(said);
    expect(inspect(error, { depth: Infinity })).not.toContain('SECRET');
  });

  it.each(['sleep 3', 'sleep 3; echo tml-late', 'echo tml-early; sleep 3; true'])(
    'was waited for without an end, and every call with it: %s',
    async (TINKER_CREDENTIAL_CMD) => {
      const source = resolveCredential({
        isHosted: true,
        environment: { TINKER_CREDENTIAL_CMD },
        store,
        commandTimeoutMs: 100,
      });
      await expect(firstValueFrom(source.token())).rejects.toMatchObject({
        code: 'credential',
        message: 'TINKER_CREDENTIAL_CMD did not end within 0.1 s',
      });
    },
  );

  it('is what counts where the organisation demands it; only a JWT stands in for it', async () => {
    const environment = { TINKER_CREDENTIAL_CMD: COMMAND };
    expect(
      await firstValueFrom(resolveCommandCredential({ isHosted: true, apiKey: 'tml-key', environment }).token()),
    ).toBe('tml-command');
    expect(
      await firstValueFrom(resolveCommandCredential({ isHosted: true, apiKey: 'eyJx', environment }).token()),
    ).toBe('eyJx');
    expect(() => resolveCommandCredential({ isHosted: true, apiKey: 'tml-key', environment: {} })).toThrow(
      /requires TINKER_CREDENTIAL_CMD/,
    );
  });
});

describe('jwtClaims', () => {
  it('reads the middle part, and nothing of what is none', () => {
    const claims = { exp: 7, email: 'ä@b' };
    expect(jwtClaims(`h.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.s`)).toEqual(claims);
    for (const text of ['', 'a.b', 'a.!!.c', 'tml-key']) expect(jwtClaims(text)).toBeUndefined();
  });
});

describe('the key of another server', () => {
  it('may have any form that a header can carry', () => {
    const environment = { TINKER_API_KEY: 'sk-123' };
    expect(resolveCredential({ isHosted: false, environment }).current()).toBe('sk-123');
    expect(() => resolveCredential({ isHosted: true, environment })).toThrow("the API key must start with 'tml-'");
    expect(() => resolveCredential({ isHosted: false, environment: { TINKER_API_KEY: 'a b' } })).toThrow(
      'cannot be sent',
    );
  });
});
