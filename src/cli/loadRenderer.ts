import type { Observable } from 'rxjs';
import type { Renderer } from '../chat/renderers/core/Renderer.js';
import type { TinkerEvent } from '../client/events.js';
import { Transfer } from './terminal/byteBar.js';
import type { Context } from './context.js';
import type { Status } from './terminal/statusLine.js';
import { waitFor } from './terminal/waitFor.js';

/** Loads a renderer, and shows how its tokenizer's files come from the hub. */
export async function loadRenderer(
  context: Context,
  load: () => PromiseLike<Renderer>,
  events$: Observable<TinkerEvent>,
): Promise<Renderer> {
  const { hubEvents$ } = await import('../chat/tokenizer/hub/hubEvents.js');
  const transfer = new Transfer(context.now);
  const files = new Map<string, { readonly receivedBytes: number; readonly totalBytes: number | undefined }>();
  let repo = '';
  let retry: string | undefined;
  const watching = hubEvents$.subscribe((event) => {
    ({ repo } = event);
    retry = event.type === 'file-retry' ? `${event.reason}; trying again` : undefined;
    if (event.type !== 'file-progress') return;
    files.set(event.file, event);
    const all = [...files.values()];
    const totalBytes = all.reduce<number | undefined>(
      (sum, file) => (sum === undefined || file.totalBytes === undefined ? undefined : sum + file.totalBytes),
      0,
    );
    transfer.update(
      all.reduce((sum, { receivedBytes }) => sum + receivedBytes, 0),
      totalBytes,
    );
  });
  const label = (): string | Status => {
    if (retry !== undefined) return `loading the tokenizer (${retry})`;
    // After the last byte the tokenizer is made, which takes its time for a large vocabulary.
    if (!transfer.begun || transfer.done) return 'loading the tokenizer';
    return { label: `tokenizer of ${repo}`, ...transfer.status() };
  };
  try {
    return await waitFor(context, label, load(), events$);
  } finally {
    watching.unsubscribe();
  }
}
