import type { ServiceClient } from '../client/ServiceClient.js';
import { plainLine } from '../support/plainText.js';
import { refuseUnknownKeys } from '../wire/record.js';
import { ValidationError } from '../wire/tinkerError.js';
import type { LossFnType } from '../wire/training.js';
import type { GetServerCapabilitiesResponse } from '../wire/session.js';

/** Whether a server has a feature: as the protocol says, not at all, in its own way, or nobody could tell. */
export type FeatureState = 'yes' | 'no' | 'differs' | 'unknown';
/** One feature of a server, as a probe found it. */
export interface Feature {
  /** Whether the server supports it. */
  readonly state: FeatureState;
  /** What was seen, in a few words. */
  readonly note?: string;
}

/** What a server can do, as `tinker-rx doctor --conformance` found out and wrote to a file. */
export interface ServerProfile {
  /** Version of this file format: 1. */
  readonly version: 1;
  /** The server's base URL. */
  readonly service: string;
  /** The model it was probed with. */
  readonly baseModel: string;
  /** When, in ISO 8601. */
  readonly takenAt: string;
  /** By name, for instance `loss: ppo`. */
  readonly features: Readonly<Record<string, Feature>>;
}

/** What a program is going to use. Everything may be left out. */
export interface PlannedUse {
  /** The model to be used. Default: any. */
  readonly baseModel?: string;
  /** Ready losses by name. */
  readonly losses?: readonly LossFnType[];
  /** A family of optimizers. */
  readonly optimizer?: string;
  /** Any other features, as a profile names them. */
  readonly features?: readonly string[];
  /** The longest input, in tokens. */
  readonly longestInput?: number;
}

const PLANNED_USE: ReadonlySet<string> = new Set(
  Object.keys({
    baseModel: true,
    features: true,
    longestInput: true,
    losses: true,
    optimizer: true,
  } satisfies Record<keyof PlannedUse, true>),
);

/** @throws ValidationError if a plan is no object, or has an unknown field. */
function checkPlannedUse(use: PlannedUse): void {
  if (typeof use !== 'object' || use === null) throw new ValidationError('a plan must be an object');
  refuseUnknownKeys(use, PLANNED_USE, 'use');
}

/** Something that will not work, or not as the protocol says. */
export interface ForeseenProblem {
  /** The feature the problem is about. */
  readonly feature: string;
  /** `absent`: a call that uses it fails. `differs`: it runs, in the server's own way. */
  readonly kind: 'absent' | 'differs';
  /** The problem in one sentence. */
  readonly text: string;
}

const STATES: readonly unknown[] = ['yes', 'no', 'differs', 'unknown'];

/** A profile from parsed JSON. @throws ValidationError for anything else. */
export function readProfile(json: unknown): ServerProfile {
  const profile = json as Partial<ServerProfile> | null;
  const features: unknown = profile?.features;
  const isProfile =
    profile?.version === 1 &&
    typeof profile.service === 'string' &&
    typeof profile.takenAt === 'string' &&
    typeof features === 'object' &&
    features !== null &&
    Object.values(features).every((feature) => STATES.includes((feature as Partial<Feature> | null)?.state));
  if (!isProfile)
    throw new ValidationError('this is not a server profile: write one with tinker-rx doctor --conformance');
  return profile as ServerProfile;
}

/**
 * What of a plan will not work at a service, or not as the protocol says: by the service's own list of models, which it asks for, and by a
 * `profile`. Empty if nothing is known against it. Opens no session.
 *
 * ```ts
 * const problems = await checkUse(service, { baseModel: 'Qwen/Qwen3-8B', losses: ['ppo'] });
 * ```
 * Rejects with a `ValidationError` for a plan with unknown fields, and with what the service answers.
 */
export async function checkUse(
  service: Pick<ServiceClient, 'getServerCapabilities'>,
  use: PlannedUse,
  profile?: ServerProfile,
): Promise<readonly ForeseenProblem[]> {
  checkPlannedUse(use);
  return foresee(use, { profile, capabilities: await service.getServerCapabilities() });
}

/** The same without asking a service: by a profile, by a list of models, or both. */
export function foresee(
  use: PlannedUse,
  {
    profile,
    capabilities,
  }: { readonly profile?: ServerProfile | undefined; readonly capabilities?: GetServerCapabilitiesResponse },
): readonly ForeseenProblem[] {
  const features = [
    ...(use.losses ?? []).map((loss) => `loss: ${loss === 'custom' ? 'custom, run by the server' : loss}`),
    ...(use.optimizer === undefined ? [] : [`optimizer: ${use.optimizer}`]),
    ...(use.features ?? []),
  ];
  const fromProfile = features.flatMap((feature): ForeseenProblem[] => {
    const found = profile?.features[feature];
    if (found === undefined || found.state === 'yes' || found.state === 'unknown') return [];
    return [{ feature, kind: found.state === 'no' ? 'absent' : 'differs', text: textOf(profile!, feature, found) }];
  });
  return [...(capabilities === undefined ? [] : fromCapabilities(use, capabilities)), ...fromProfile];
}

function fromCapabilities(
  { baseModel, longestInput }: PlannedUse,
  { supportedModels }: GetServerCapabilitiesResponse,
): readonly ForeseenProblem[] {
  if (baseModel === undefined) return [];
  const model = supportedModels.find(({ modelName }) => modelName === baseModel);
  if (model === undefined) {
    const names = supportedModels.map(({ modelName }) => modelName).join(', ');
    return [
      {
        feature: 'model',
        kind: 'absent',
        text: `the service has no model ${plainLine(baseModel, 100)}; it has: ${plainLine(names, 300)}`,
      },
    ];
  }
  const { maxContextLength: most } = model;
  if (most === undefined || longestInput === undefined || longestInput <= most) return [];
  return [
    {
      feature: 'context',
      kind: 'absent',
      text: `an input has ${longestInput} tokens, the context of ${baseModel} is ${most}`,
    },
  ];
}

function textOf({ service, takenAt }: ServerProfile, feature: string, { state, note }: Feature): string {
  const said = state === 'no' ? 'does not have' : 'has in its own way';
  return `the service ${said} "${feature}"${note === undefined ? '' : `: ${plainLine(note, 200)}`} (profile of ${plainLine(service, 100)}, ${takenAt.slice(0, 10)})`;
}
