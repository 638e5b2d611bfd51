import type { Feature, ServerProfile } from './profile.js';
import { checkpointProbes } from './checkpointProbes.js';
import { limitProbes } from './limitProbes.js';
import { lossProbes } from './lossProbes.js';
import { orderProbes } from './orderProbes.js';
import { runProbe, type Probe } from './Probe.js';
import type { Prober } from './Prober.js';
import { sampleProbes } from './sampleProbes.js';
import { wireProbes } from './wireProbes.js';

/** In the order in which they run: how to send a pass is found out first. */
export const PROBES: readonly Probe[] = [
  ...wireProbes,
  ...lossProbes,
  ...sampleProbes,
  ...orderProbes,
  ...checkpointProbes,
  ...limitProbes,
];

/** Asks a server everything, one question after the other. `onFeature` hears of each answer. */
export async function runProbes(
  prober: Prober,
  service: string,
  onFeature: (name: string, feature: Feature) => void = () => {},
): Promise<ServerProfile> {
  const features: Record<string, Feature> = {};
  for (const probe of PROBES) {
    const outcome = await runProbe(probe, prober);
    features[probe.feature] = outcome;
    onFeature(probe.feature, outcome);
  }
  await prober.end();
  const takenAt = new Date(prober.now()).toISOString();
  return { version: 1, service, baseModel: prober.baseModel, takenAt, features };
}
