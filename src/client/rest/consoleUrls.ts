import { parseTinkerPath } from '../../wire/tinkerPath.js';

const CONSOLE = 'https://tinker.thinkingmachines.ai';

/** Pages of the hosted service's console, for people. */
export const sessionsConsoleUrl = (): string => `${CONSOLE}/sessions`;
export const sessionConsoleUrl = (sessionId: string): string => `${CONSOLE}/sessions/${sessionId}`;
export const trainingRunConsoleUrl = (trainingRunId: string): string => `${CONSOLE}/training_runs/${trainingRunId}`;
export const playgroundUrl = (path: string): string =>
  `${CONSOLE}/playground?mode=checkpoint&checkpoint=${encodeURIComponent(path)}`;

export function checkpointConsoleUrl(path: string): string {
  const { trainingRunId, checkpointId } = parseTinkerPath(path);
  return `${CONSOLE}/checkpoints/${encodeURIComponent(trainingRunId)}/${encodeURIComponent(checkpointId)}`;
}
