/** A hand-written hub that answers as huggingface.co's public API does, and keeps what it was sent. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SeenByHub {
  readonly method: string;
  readonly url: string;
  readonly token: string | undefined;
  readonly body: string;
}

export interface FakeHub {
  readonly endpoint: string;
  readonly seen: SeenByHub[];
  /** Large files that are there already, by their sha256. */
  readonly have: Set<string>;
  /** The README of every repository; absent: there is none. */
  readme?: string;
  close(): Promise<void>;
}

/** Takes the token `hf_good` of the user ada; large files are those that do not end in `.json` or `.md`. */
export async function startHub(): Promise<FakeHub> {
  const seen: SeenByHub[] = [];
  const have = new Set<string>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('latin1');
      const { url = '', method = '' } = request;
      seen.push({ method, url, token: request.headers.authorization, body });
      const json = (value: unknown, status = 200) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
      if (url === '/api/whoami-v2')
        return request.headers.authorization === 'Bearer hf_good'
          ? json({ name: 'ada', type: 'user', auth: {} })
          : json({ error: 'no' }, 401);
      if (url === '/api/repos/create') return json({ error: 'You already created this model repo' }, 409);
      if (url.includes('/preupload/')) {
        const { files } = JSON.parse(body) as { files: { path: string }[] };
        const uploadMode = (path: string) => (/\.(json|md)$/.test(path) ? 'regular' : 'lfs');
        return json({ files: files.map(({ path }) => ({ path, uploadMode: uploadMode(path) })) });
      }
      if (url.endsWith('/info/lfs/objects/batch')) {
        const { objects } = JSON.parse(body) as { objects: { oid: string; size: number }[] };
        const actions = (oid: string) => ({
          upload: { href: `${hub.endpoint}/store/${oid}`, header: { 'x-store': 'yes' } },
          verify: { href: `${hub.endpoint}/verify`, header: {} },
        });
        const answer = ({ oid, size }: { oid: string; size: number }) => ({
          oid,
          size,
          ...(have.has(oid) ? {} : { actions: actions(oid) }),
        });
        return json({ objects: objects.map(answer) });
      }
      if (url.includes('/commit/'))
        return json({ commitOid: '1', commitUrl: `${hub.endpoint}/commit/1`, hookOutput: '' });
      if (url.includes('/resolve/'))
        return hub.readme === undefined ? json({}, 404) : response.writeHead(200).end(hub.readme);
      json({});
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const hub: FakeHub = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    have,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
  return hub;
}
