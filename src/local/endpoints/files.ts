import { createHash } from 'node:crypto';
import { HttpError } from '../http/httpError.js';
import { rangeReply } from '../http/ranges.js';
import { json, type Reply } from '../http/reply.js';
import type { RequestContext } from '../http/requestContext.js';
import { get, type Route } from '../http/router.js';
import { FILES } from '../http/signedUrls.js';
import type { LocalService } from '../service/localService.js';
import { exportPeft } from '../engine/files/checkpoint.js';
import type { Manifest } from '../store/manifest.js';
import { stateOfFiles } from '../store/modelFiles.js';
import { tar } from '../store/tar.js';

const BINARY = 'application/octet-stream';

/** What signed URLs lead to. */
export const fileRoutes = (service: LocalService): Route[] => [
  get(`${FILES}/:token/:file`, (context) => sendFile(service, context)),
];

async function sendFile(service: LocalService, context: RequestContext): Promise<Reply> {
  const target = service.urls.open(context);
  if (target.kind === 'upload') throw new HttpError(403, 'this URL is for writing');
  if (target.kind === 'trace') return json(service.traces.export(target.sessionId));
  const manifest = service.checkpoints.find(target.path);
  if (manifest === undefined) throw new HttpError(404, 'the checkpoint was deleted');
  if (target.kind === 'archive') return sendArchive(context, await archiveOf(service, manifest));
  const found = service.checkpoints.file(manifest, target.file);
  if (found === undefined) throw new HttpError(404, 'the checkpoint has no such file');
  const { path: file, sizeBytes, sha256 } = found;
  const contentType = target.file.endsWith('.json') ? 'application/json' : BINARY;
  return rangeReply(context, { content: { file }, contentType, sizeBytes, sha256 });
}

function sendArchive(context: RequestContext, content: Uint8Array): Reply {
  const sha256 = createHash('sha256').update(content).digest('hex');
  return rangeReply(context, { content, contentType: 'application/x-tar', sizeBytes: content.byteLength, sha256 });
}

/** The adapter in Hugging Face PEFT layout, and a marker that the archive is whole, as the hosted service adds it. */
async function archiveOf(service: LocalService, manifest: Manifest): Promise<Uint8Array> {
  const files = await service.checkpoints.read(manifest);
  const exported =
    manifest.type === 'external' ? files : new Map<string, Uint8Array>(Object.entries(exportPeft(stateOfFiles(files))));
  return tar(new Map([...exported, ['checkpoint_complete', new Uint8Array()]]), Date.parse(manifest.createdAt));
}
