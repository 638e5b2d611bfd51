import { mkdir, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { byteBar } from '../terminal/byteBar.js';
import { withRest } from '../clients.js';
import { note, type Context } from '../context.js';
import { fetchFile } from '../checkpoint/files/fetchFile.js';
import { size } from '../output/format.js';
import { withHttp } from '../http.js';
import { printJson, printProperties } from '../output/print.js';

export default async function sessionExportTrace(
  context: Context,
  { output, urlOnly }: { readonly output?: string; readonly urlOnly?: boolean },
  sessionId: string,
): Promise<void> {
  if (context.format !== 'json') note(context, `Exporting the trace of session ${sessionId} (this may take a while) …`);
  const url = await withRest(context, 'building the trace', (rest) => rest.exportSessionTrace(sessionId));
  if (urlOnly === true) {
    // Bare, for curl "$(tinker-rx session export-trace <id> --url-only)".
    if (context.format === 'json') printJson(context, { session_id: sessionId, url });
    else context.stdout.write(`${url}\n`);
    return;
  }
  const target = output ?? `${sessionId.replaceAll(/[/\\]/g, '_')}.pftrace`;
  const bytes = await save(context, url, target);
  printProperties(
    context,
    [
      ['Session ID', sessionId],
      ['Saved to', target],
      ['Size', size(bytes)],
    ],
    () => ({ session_id: sessionId, destination: target, file_size_bytes: bytes }),
  );
}

async function save(context: Context, url: string, target: string): Promise<number> {
  await mkdir(dirname(target), { recursive: true });
  const bar = byteBar(context, 'trace');
  let bytes = 0;
  await withHttp((http) =>
    fetchFile(http, {
      url: () => Promise.resolve(url),
      target: `${target}.part`,
      signal: new AbortController().signal,
      etag: undefined,
      onEtag: () => {},
      onProgress: (done, all) => {
        bytes = done;
        bar.update(done, all);
      },
    }),
  ).finally(() => bar.end());
  await rename(`${target}.part`, target);
  return bytes;
}
