import type { ObservableInput } from 'rxjs';
import type { CustomLossFn, LossHandle } from '../../client/training/customLoss.js';
import type { SamplingClient } from '../../client/SamplingClient.js';
import type { TracedLoss } from '../../losses/TracedLoss.js';
import type { Datum } from '../../wire/datum.js';
import type { AdamParams, OptimizerParams } from '../../wire/optimizer.js';
import type { ForwardBackwardOutput, LossFnConfig, LossFnType } from '../../wire/training.js';

/** What `train` needs of a trainer. A `TrainingClient` is one; so is a fake in a test. */
export interface Trainable {
  /** Computes the loss and adds its gradients, as `TrainingClient.forwardBackward` does. */
  forwardBackward(
    data: readonly Datum[],
    loss: LossFnType,
    options?: { readonly lossFnConfig?: LossFnConfig },
  ): ObservableInput<ForwardBackwardOutput>;
  /** Needed for custom losses. */
  forwardBackwardCustom?(
    data: readonly Datum[],
    loss: CustomLossFn | LossHandle | TracedLoss,
  ): ObservableInput<ForwardBackwardOutput>;
  /** Updates the weights with the gradients so far, as `TrainingClient.optimStep` does. */
  optimStep(
    params: AdamParams | OptimizerParams,
  ): ObservableInput<{ readonly metrics?: Readonly<Record<string, number>> | undefined }>;
}

/** What `checkpointEvery` needs of a trainer. */
export interface Saves {
  /** Saves weights and optimizer under a name, as `TrainingClient.saveState` does. */
  saveState(name: string, options: { readonly ttlSeconds?: number }): ObservableInput<{ readonly path: string }>;
  /** Needed for the kinds 'sampler' and 'both'. */
  saveWeightsForSampler?(
    name: string,
    options: { readonly ttlSeconds?: number },
  ): ObservableInput<{ readonly path: string }>;
}

/** What `evaluateEvery` needs of a trainer, to evaluate a sampler over its weights. */
export interface TakesSnapshots<S = SamplingClient> {
  /** Takes a snapshot of the weights and returns a client that samples from it. */
  saveWeightsAndGetSamplingClient(): ObservableInput<S>;
}

/** What `evaluateEvery` needs of a trainer, for the loss on held-out data. */
export interface ForwardPasses {
  /** Computes the loss without gradients, as `TrainingClient.forward` does. */
  forward(
    data: readonly Datum[],
    loss: LossFnType,
    options?: { readonly lossFnConfig?: LossFnConfig },
  ): ObservableInput<ForwardBackwardOutput>;
}
