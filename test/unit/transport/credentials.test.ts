import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CredentialStore, type KeyRecord } from '../../../src/transport/credentials.js';
import { ValidationError } from '../../../src/wire/tinkerError.js';

let folder: string;
let path: string;
let store: CredentialStore;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-'));
  path = join(folder, '.tinker', 'credentials.json');
  store = new CredentialStore(path);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const key = (text: string, more: Partial<KeyRecord> = {}): KeyRecord => ({
  type: 'manual',
  key: text,
  name: 'mine',
  ...more,
});
const mode = (file: string): number => statSync(file).mode & 0o777;

describe('the credential store', () => {
  it('is empty where there is no file', () => {
    expect(store.load()).toEqual({ version: 1, keys: {} });
    expect(store.defaultKey()).toBeUndefined();
  });

  it('writes the file that the Python SDK reads', () => {
    store.addKey('a', key('tml-a', { note: 'work', details: { org_details: { name: 'o' } } }));
    store.setDefault('a');
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({
      version: 1,
      default: 'a',
      keys: {
        a: { type: 'manual', key: 'tml-a', name: 'mine', note: 'work', details: { org_details: { name: 'o' } } },
      },
    });
    expect(new CredentialStore(path).defaultKey()).toBe('tml-a');
  });

  it('is for its owner only, and leaves nothing else behind', () => {
    store.addKey('a', key('tml-a'));
    expect(mode(path)).toBe(0o600);
    expect(mode(join(folder, '.tinker'))).toBe(0o700);
    expect(readdirSync(join(folder, '.tinker'))).toEqual(['credentials.json']);
  });

  it('replaces the file instead of writing into it', () => {
    store.addKey('a', key('tml-a'));
    chmodSync(path, 0o644);
    const { ino } = statSync(path);
    store.addKey('b', key('tml-b'));
    expect(statSync(path).ino).not.toBe(ino);
    expect(mode(path)).toBe(0o600);
    expect(Object.keys(store.load().keys)).toEqual(['a', 'b']);
  });

  it('changes and deletes keys; the default goes with its key', () => {
    store.addKey('a', key('tml-a'));
    store.addKey('b', key('tml-b'));
    store.setDefault('b');
    store.deleteKey('a');
    expect(store.defaultKey()).toBe('tml-b');
    store.addKey('b', key('tml-new'));
    expect(store.defaultKey()).toBe('tml-new');
    store.deleteKey('b');
    expect(store.load()).toEqual({ version: 1, keys: {} });
    store.addKey('c', key('tml-c'));
    store.setDefault('c');
    store.setDefault(undefined);
    expect(store.defaultKey()).toBeUndefined();
  });

  it('refuses keys that it does not have', () => {
    expect(() => store.setDefault('x')).toThrow(new ValidationError('no stored key "x"'));
    expect(() => store.deleteKey('x')).toThrow(new ValidationError('no stored key "x"'));
  });

  it('knows no default that points nowhere, and reads null as absent', () => {
    mkdirSync(join(folder, '.tinker'));
    writeFileSync(path, JSON.stringify({ version: 1, default: 'gone', keys: {} }));
    expect(store.defaultKey()).toBeUndefined();
    writeFileSync(path, JSON.stringify({ version: 1, default: null, keys: { a: { ...key('tml-a'), note: null } } }));
    expect(store.load().keys['a']).toEqual(key('tml-a'));
  });

  it.each([
    ['tml-SECRET', 'are not JSON'],
    ['{"version":2,"keys":{}}', 'version'],
    ['{"keys":{"a":{"type":"manual","key":7,"name":"SECRET"}}}', 'keys.a.key: expected string'],
    ['{"keys":{"a":{"type":"SECRET","key":"k","name":"n"}}}', "keys.a.type: expected 'manual' | 'generated'"],
  ])('does not show what is in a file that it cannot read (%s)', (text, said) => {
    mkdirSync(join(folder, '.tinker'));
    writeFileSync(path, text);
    expect(() => store.load()).toThrow(ValidationError);
    expect(() => store.load()).toThrow(said);
    expect(() => store.load()).not.toThrow(/SECRET/);
  });

  it('says so when the file cannot be read at all', () => {
    mkdirSync(path, { recursive: true });
    expect(() => store.load()).toThrow(new ValidationError(`cannot read stored credentials in ${path}`));
  });
});
