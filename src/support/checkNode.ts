import { nodeProblem } from './nodeVersion.js';

// Imported first: what is loaded after it fails on an old Node with words that say nothing of the version.
const problem = nodeProblem(globalThis.process?.versions ?? {});
if (problem !== undefined) throw new Error(problem);
