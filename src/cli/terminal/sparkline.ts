const BARS = '▁▂▃▄▅▆▇█';

/** Numbers as a line of bars, at most `width` of them, from the smallest to the largest. */
export function sparkline(values: readonly number[], width = 40): string {
  const cells = Math.min(width, values.length);
  const means = Array.from({ length: cells }, (_, cell) => {
    const part = values.slice(
      Math.floor((cell * values.length) / cells),
      Math.floor(((cell + 1) * values.length) / cells),
    );
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
  const [low, high] = [Math.min(...means), Math.max(...means)];
  return means.map((mean) => BARS[high === low ? 0 : Math.round(((mean - low) / (high - low)) * 7)]).join('');
}
