/**
 * Commands in what is said to the user, as the user calls them: who has the command through npx, or through a script of npm, has no
 * `tinker-rx` in the path.
 */
export function withNpxPrefix(text: string, environment: Readonly<Record<string, string | undefined>>): string {
  const throughNpm = environment['npm_command'] === 'exec' || environment['npm_lifecycle_event'] !== undefined;
  return throughNpm ? text.replaceAll(/(?<![\w@/-])(?<!npx )tinker-rx (?=[a-z])/g, 'npx tinker-rx ') : text;
}
