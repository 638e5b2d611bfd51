import type { ProvenanceSpan } from '../../wire/datum.js';

/** Runs that follow each other in the same prompt or the same sample, made one; empty ones dropped. */
export function joinSpans(spans: readonly ProvenanceSpan[]): ProvenanceSpan[] {
  const joined: ProvenanceSpan[] = [];
  for (const span of spans) {
    if (span.length === 0) continue;
    const last = joined.at(-1);
    const goesOn =
      last?.type === span.type &&
      last.sequenceId === span.sequenceId &&
      (last.offset ?? 0) + last.length === (span.offset ?? 0);
    if (goesOn) joined[joined.length - 1] = { ...last, length: last.length + span.length };
    else joined.push(span);
  }
  return joined;
}

/** The runs of positions `start` to `start + length` of what the given runs tile. */
export function cutSpans(spans: readonly ProvenanceSpan[], start: number, length: number): ProvenanceSpan[] {
  const cut: ProvenanceSpan[] = [];
  let at = 0;
  for (const span of spans) {
    const from = Math.max(start, at);
    const to = Math.min(start + length, at + span.length);
    if (to > from) cut.push({ ...span, offset: (span.offset ?? 0) + from - at, length: to - from });
    at += span.length;
  }
  return cut;
}
