export { gated } from '../../src/testing/gated.js';
