// Starts the canned server and the runs of the peers, each in a process of its own.
import { execFile, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const MOST_OUTPUT = 1e8;
/** What makes Node and Python trust the server over TLS. */
const CERTIFICATE = fileURLToPath(new URL('./tls/ca.pem', import.meta.url));
const pathOf = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Runs the work beside a canned server. `settings` are the server's. */
export async function withServer(settings, work) {
  const server = fork(pathOf('./cannedServer.mjs'), [JSON.stringify(settings)]);
  try {
    const { port } = await new Promise((resolve, reject) => {
      server.once('message', resolve);
      server.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    });
    return await work(`${settings.tls ? 'https' : 'http'}://localhost:${port}`);
  } finally {
    server.disconnect();
  }
}

/** The JSON that a script of this folder prints for a job. */
export async function runApart(script, job, { nodeOptions = [], program = process.execPath } = {}) {
  const { stdout } = await run(program, [...nodeOptions, pathOf(script), JSON.stringify(job)], {
    maxBuffer: MOST_OUTPUT,
    env: { ...process.env, NODE_EXTRA_CA_CERTS: CERTIFICATE, SSL_CERT_FILE: CERTIFICATE },
  });
  return JSON.parse(stdout.trim().split('\n').at(-1));
}
