/**
 * What a server of the protocol can do: profiles that `tinker-rx doctor --conformance` writes, and plans checked against them.
 *
 * @module tinker-rx/conformance
 */
import '../support/checkNode.js';
export {
  checkUse,
  foresee,
  readProfile,
  type Feature,
  type FeatureState,
  type ForeseenProblem,
  type PlannedUse,
  type ServerProfile,
} from './profile.js';
