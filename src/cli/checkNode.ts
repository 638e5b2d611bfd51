import { nodeProblem } from '../support/nodeVersion.js';

// Imported first: what is loaded after it fails on an old Node with words that say nothing of the version.
const problem = nodeProblem(process.versions);
if (problem !== undefined) {
  process.stderr.write(`Error: ${problem}\n`);
  process.exit(1);
}
