export { datum, type FakeSampler, fakeTrainer } from '../../src/testing/fakeTrainer.js';
