import type { Feature, ServerProfile } from './profile.js';
import { checkpointProbes } from './checkpointProbes.js';
import { limitProbes } from './limitProbes.js';
import { lossProbes } from './lossProbes.js';
import { orderProbes } from './orderProbes.js';
import { no, type Probes } from './Probe.js';
import type { Prober } from './Prober.js';
import { sampleProbes } from './sampleProbes.js';
import { wireProbes } from './wireProbes.js';

/** In the order in which they run: how to send a pass is found out first. */
const PROBES: Probes = {
  ...wireProbes,
  ...lossProbes,
  ...sampleProbes,
  ...orderProbes,
  ...checkpointProbes,
  ...limitProbes,
};
export const FEATURES: readonly string[] = Object.keys(PROBES);

/** Asks a server everything, one question after the other. `onFeature` hears of each answer. */
export async function runProbes(
  prober: Prober,
  service: string,
  onFeature: (name: string, feature: Feature) => void = () => {},
): Promise<ServerProfile> {
  const features: Record<string, Feature> = {};
  for (const [feature, probe] of Object.entries(PROBES)) {
    // A refusal is a no, in the server's words.
    const outcome = await probe(prober).catch((error: unknown) => no((error as Error).message));
    features[feature] = outcome;
    onFeature(feature, outcome);
  }
  await prober.end();
  const takenAt = new Date(prober.now()).toISOString();
  return { version: 1, service, baseModel: prober.baseModel, takenAt, features };
}
