/** A warning of the process: Node's own channel can be silenced and traced; browsers have none. */
export function warnProcess(message: string): void {
  const { process } = globalThis as { process?: { emitWarning?: (text: string) => void } };
  if (process?.emitWarning === undefined) console.warn(message);
  else process.emitWarning(message);
}
