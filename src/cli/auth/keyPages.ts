import { hostname } from 'node:os';

const KEYS = 'https://tinker.thinkingmachines.ai/keys';

/** The page of the console that makes a new key, named after this machine. */
export function newKeyPage(): string {
  const machine = hostname().split('.', 1)[0]?.trim() || 'unknown';
  return `${KEYS}?${new URLSearchParams({ new_key: 'true', key_name: `tinker-cli-${machine}` }).toString()}`;
}

/** The page of one key, with its button to delete it. */
export const keyPage = (id: string): string => `${KEYS}/${encodeURIComponent(id)}`;
