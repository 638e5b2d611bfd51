// Control characters and escape sequences in what a server sent must not reach the terminal.

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u;
const segmenter = new Intl.Segmenter();

/** Text as one line that cannot move the cursor or change colours. */
export const oneLine = (text: string): string => text.replace(CONTROL, '\ufffd');

/** Text of several lines that cannot move the cursor or change colours. */
export const safeText = (text: string): string =>
  text
    .split('\n')
    .map((line) => oneLine(line.replace(/\t/g, '  ').replace(/\r$/, '')))
    .join('\n');

/** How many cells of a terminal a text takes. */
export function textWidth(text: string): number {
  if (/^[\u0020-\u007e]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segmenter.segment(text)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}

export const padEnd = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - textWidth(text)));

/** A text of at most `width` cells: whole, or cut off with an ellipsis. */
export function cutTo(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let cut = '';
  let cells = 0;
  for (const { segment } of segmenter.segment(text)) {
    cells += textWidth(segment);
    if (cells > width - 1) break;
    cut += segment;
  }
  return `${cut}…`;
}

/** Breaks a text into lines of at most `width` cells: after spaces and `/`, `-`, `_`, `:`, and anywhere where it must. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/(?<=[\s/\-_:])/)) {
    if (textWidth(line + word.trimEnd()) <= width) {
      line += word;
      continue;
    }
    if (line !== '') lines.push(line.trimEnd());
    line = '';
    for (const { segment } of segmenter.segment(word)) {
      if (textWidth(line + segment) > width && line !== '') {
        lines.push(line);
        line = '';
      }
      line += segment;
    }
  }
  return line.trimEnd() === '' && lines.length > 0 ? lines : [...lines, line.trimEnd()];
}
