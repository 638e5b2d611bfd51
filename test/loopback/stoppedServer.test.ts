/** A server that is stopped answers nothing and closes nothing, though its machine accepts connections. A client ends all the same. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleForNode } from './support/bundleForNode.js';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const folder = join(here('../../node_modules/.cache'), `tinker-rx-stopped-server-${process.pid}`);
const script = join(folder, 'child.mjs');
/**
 * Longer than anything may take, also on a busy machine: 5 s for the sockets of a transport; for a client at fifty times the speed,
 * one second more. A process that is still alive then hangs, and is killed.
 */
const BOUND_MS = 120_000;

beforeAll(async () => {
  mkdirSync(folder, { recursive: true });
  await bundleForNode(here('stoppedServerChild.ts'), folder, 'child.mjs');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Run {
  readonly said: string;
  readonly end: number | string | null;
}
/** Runs a client, stops the server when it is ready, and tells what the client said and how it ended. */
function run(program: string, url: string, server: ChildProcess): Promise<Run> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [script, program, url], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: here('support/tls/cert.pem') },
      stdio: ['pipe', 'pipe', 'inherit'],
      timeout: BOUND_MS,
      killSignal: 'SIGKILL',
    });
    let said = '';
    child.stdout.on('data', (text: Buffer) => {
      if (said === '') {
        server.kill('SIGSTOP');
        child.stdin.write('stopped\n');
      }
      said += text.toString();
    });
    child.on('close', (code, signal) => {
      server.kill('SIGCONT');
      resolve({ said, end: signal ?? code });
    });
  });
}

const PROTOCOLS = ['HTTP/1.1', 'HTTP/2'] as const;
const servers: ChildProcess[] = [];

function startServer(protocol: string): Promise<{ readonly server: ChildProcess; readonly url: string }> {
  const server = spawn(process.execPath, ['--import', 'tsx', here('support/stoppableServer.ts'), protocol], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  servers.push(server);
  return new Promise((resolve) =>
    server.stdout.once('data', (text: Buffer) => resolve({ server, url: text.toString().trim() })),
  );
}
afterAll(() => servers.forEach((server) => server.kill('SIGKILL')));

describe('a client of a stopped server', () => {
  let started: Awaited<ReturnType<typeof startServer>>[];
  beforeAll(async () => {
    started = await Promise.all(PROTOCOLS.map(startServer));
  });

  const six = `["failed: connection","failed: connection","failed: connection","failed: connection","failed: connection","failed: connection"]\n`;
  it.each([
    ['transport.destroy', six],
    ['transport.close', six],
    ['transport.destroy before the first answer', '["failed: connection","failed: connection","failed: connection"]\n'],
    ['transport.destroy with a connection that carried a 503', ''],
    ['client.destroy', '["cancelled","cancelled","cancelled","cancelled","cancelled","cancelled"]\n'],
    ['client.close', ''],
  ])(
    'ends, fails what was in flight and leaves nothing behind, over HTTP/1.1 and HTTP/2: %s',
    async (program, outcomes) => {
      const [http1, http2] = await Promise.all(started.map(({ server, url }) => run(program, url, server)));
      const ended: Run = { said: `ready\n${outcomes}ended\n`, end: 0 };
      expect({ http1, http2 }).toEqual({ http1: ended, http2: ended });
    },
  );
});
