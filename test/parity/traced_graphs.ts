// Prints the graphs and inputs that test/parity/record_traced_losses.py has PyTorch evaluate.
import { inputsFor, LOSSES } from '../unit/losses/readyLosses.js';

const cases = Object.entries(LOSSES).map(([name, loss]) => ({
  name,
  derivedBy: loss.program.derivedBy,
  inputs: loss.inputs.map(({ name: input }) => input),
  values: inputsFor(name, loss),
  graph: loss.graph,
}));
process.stdout.write(JSON.stringify(cases));
