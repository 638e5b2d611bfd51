/** Whether a name matches a pattern as Python's fnmatch reads it: `*`, `?`, `[abc]`, `[!abc]`; a slash is nothing special. */
export function matchesGlob(name: string, pattern: string): boolean {
  const full = pattern.endsWith('/') ? `${pattern}*` : pattern;
  const source = full.replace(/\[!?[^\]]+\]|[*?]|[^*?[\]]+|[[\]]/g, (part) => {
    if (part === '*') return '.*';
    if (part === '?') return '.';
    if (/^\[.+\]$/.test(part)) return part.replace(/^\[!/, '[^').replaceAll('\\', '\\\\');
    return part.replace(/[.+^${}()|[\]\\]/g, '\\$&');
  });
  return new RegExp(`^${source}$`, 's').test(name);
}
