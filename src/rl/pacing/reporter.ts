import type { RlEvent, RlListener } from './rlEvent.js';

/** Calls the listener. Without one, prints the events that must not be lost silently. */
export function reporter(listener: RlListener | undefined): RlListener {
  let skippedBefore = false;
  const print = (event: RlEvent): void => {
    const message = warningOf(event);
    if (message === undefined || (event.type === 'batch-skipped' && skippedBefore)) return;
    if (event.type === 'batch-skipped') skippedBefore = true;
    console.error(`tinker-rx warning: ${message}`);
  };
  const hear = listener ?? print;
  return (event: RlEvent) => {
    try {
      hear(event);
    } catch {
      // A listener that throws must not end the run it listens to.
    }
  };
}

function warningOf(event: RlEvent): string | undefined {
  switch (event.type) {
    case 'rl-warning':
      return event.message;
    case 'batch-skipped':
      return `no step was made of a batch of ${event.groups} groups: ${event.reason}. Further ones are counted at the end`;
    case 'groups-untaught':
      return `the last ${event.groups} groups taught nothing and are in no step: ${event.answers} answers, mean reward ${event.reward}`;
    default:
      return undefined;
  }
}
