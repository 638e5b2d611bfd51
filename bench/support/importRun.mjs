// CPU of an import, in a process of its own: node importRun.mjs <{ origin } or { module }>.
// { module } imports it: prints { importMs }. { origin } imports tinker-rx as a program does, by its name, and sends a request; the clock
// stops when the first socket connects: prints { firstRequestMs, importMs }.
import { Socket } from 'node:net';

const { origin, module } = JSON.parse(process.argv[2]);
const ms = (from, to) => (to.user + to.system - from.user - from.system) / 1000;

async function importAlone() {
  const started = process.cpuUsage();
  await import(module);
  return { importMs: ms(started, process.cpuUsage()) };
}

async function importAndAsk() {
  const { connect } = Socket.prototype;
  const connected = new Promise((resolve) => {
    Socket.prototype.connect = function (...to) {
      resolve(process.cpuUsage());
      return connect.apply(this, to);
    };
  });
  const started = process.cpuUsage();
  const { ServiceClient } = await import('tinker-rx');
  const imported = process.cpuUsage();
  const service = new ServiceClient({ baseUrl: origin, apiKey: 'tml-bench' });
  service.getServerCapabilities().catch(() => undefined);
  const first = await connected;
  return { firstRequestMs: ms(started, first), importMs: ms(started, imported) };
}

console.log(JSON.stringify(await (module === undefined ? importAndAsk() : importAlone())));
process.exit(0);
