export { datum, type FakeSampler, fakeTrainer, type FakeTrainerOptions } from '../../src/testing/fakeTrainer.js';
