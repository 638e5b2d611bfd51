const LEAST = [20, 18] as const;

/** What is wrong with the version of Node; undefined for one that will do, and for runtimes that only report one. */
export function nodeProblem(versions: Readonly<Record<string, string | undefined>>): string | undefined {
  if (versions['node'] === undefined || versions['bun'] !== undefined || versions['deno'] !== undefined)
    return undefined;
  const [major = 0, minor = 0] = versions['node'].split('.').map(Number);
  if (major > LEAST[0] || (major === LEAST[0] && minor >= LEAST[1])) return undefined;
  return `tinker-rx needs Node ${LEAST.join('.')} or newer, and this is Node ${versions['node']}`;
}
