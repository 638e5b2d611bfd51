import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { execute } from './execute.js';

/**
 * Serves a tarball as the only version of its package until the process ends, and sends npm to the usual registry for all other packages.
 * Gives the environment in which npm installs from here, as users do.
 */
export async function serveTarball(
  tarball: string,
  manifest: { readonly name: string; readonly version: string },
  integrity: string,
): Promise<Record<string, string>> {
  const { name, version } = manifest;
  const usual = (await execute('npm', ['config', 'get', 'registry'])).trim().replace(/\/$/, '');
  const server = createServer(({ url, headers }, response) => {
    // The next run may have the same port and another tarball.
    response.setHeader('cache-control', 'no-store');
    const dist = { tarball: `http://${headers.host}/${name}.tgz`, integrity };
    const versions = { [version]: { ...manifest, dist } };
    if (url === `/${name}`) response.end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions }));
    else if (url === `/${name}.tgz`) response.end(readFileSync(tarball));
    else response.writeHead(302, { location: `${usual}${url}` }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  return {
    npm_config_registry: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    npm_config_noproxy: [process.env['NO_PROXY'] ?? process.env['no_proxy'] ?? '', '127.0.0.1']
      .filter(Boolean)
      .join(','),
    npm_config_prefer_offline: 'true',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
  };
}
