import { datum, rowOf, TARGETS } from './data.js';
import { differs, holds, no, yes, type Probes } from './Probe.js';
import { Refused } from './answers.js';

const PROTOBUF = 'application/x-protobuf';

/** How requests and results are written. */
export const wireProbes: Probes = {
  'wire: passes as protobuf': async (prober) => {
    const model = await prober.model();
    const { status } = await prober.submitPass(model.id, model.seqId, [datum()], 'cross_entropy', { as: 'protobuf' });
    prober.passesAs = status < 300 ? 'protobuf' : 'json';
    if (status < 300) model.seqId++;
    return status < 300 ? yes() : no(`answers ${status}: this client sends JSON`);
  },
  'wire: passes as JSON': async (prober) => {
    const output = await prober.pass([datum()], 'cross_entropy', { as: 'json' });
    return holds(rowOf(output, 'logprobs').length === TARGETS.length, 'no logprob for every target');
  },
  'wire: forward passes': async (prober) => {
    const output = await prober.pass([datum()], 'cross_entropy', { forwardOnly: true });
    return holds(rowOf(output, 'logprobs').length === TARGETS.length, 'no logprob for every target');
  },
  'wire: results as protobuf': async (prober) => {
    const { request_id: id } = await prober.submitSample([40, 41], { max_tokens: 1 });
    const { type } = await prober.result(id as string, { accept: PROTOBUF });
    return type.startsWith(PROTOBUF) ? yes() : no('JSON, which this client reads too');
  },
  'wire: flags of the client': async (prober) => {
    const statuses: string[] = [];
    for (const path of ['client/config', 'client/dynamic_config']) {
      const { status } = await prober.send(path, { sdk_version: prober.connection.sdkVersion }, { lane: 'session' });
      if (status >= 300) statuses.push(`${path}: ${status}`);
    }
    return statuses.length === 0 ? yes() : differs(`${statuses.join(', ')}; defaults hold`);
  },
  'wire: the loss in the metrics': async (prober) => {
    const { metrics } = await prober.pass([datum()], 'cross_entropy', { forwardOnly: true });
    return metrics['loss:sum'] !== undefined ? yes() : differs('no loss:sum; this client sums elementwise_loss');
  },
  'wire: a session is finished': async (prober) => {
    const { session_id: id } = await prober.ask('create_session', {
      tags: [],
      user_metadata: {},
      sdk_version: prober.connection.sdkVersion,
      type: 'create_session',
    });
    const { status, json } = await prober.send(`sessions/${String(id)}/finish`, { reason: { type: 'success' } });
    return status < 300 ? yes() : no(new Refused(status, json).message);
  },
};
