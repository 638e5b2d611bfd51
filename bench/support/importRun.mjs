// CPU from the import to the first request: node importRun.mjs <{ origin }>. The clock stops when the first socket connects.
// Prints { firstRequestMs, importMs } as JSON.
import { Socket } from 'node:net';

const { origin } = JSON.parse(process.argv[2]);
const ms = (from, to) => (to.user + to.system - from.user - from.system) / 1000;
const { connect } = Socket.prototype;
const connected = new Promise((resolve) => {
  Socket.prototype.connect = function (...how) {
    resolve(process.cpuUsage());
    return connect.apply(this, how);
  };
});
const started = process.cpuUsage();
const { ServiceClient } = await import('../../dist/index.js');
const imported = process.cpuUsage();
const service = new ServiceClient({ baseUrl: origin, apiKey: 'tml-bench', telemetry: false });
service.getServerCapabilities().catch(() => undefined);
const first = await connected;
console.log(JSON.stringify({ firstRequestMs: ms(started, first), importMs: ms(started, imported) }));
process.exit(0);
