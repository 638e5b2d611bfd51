/** A registry on this machine that has one packed package, and sends npm to the usual registry for all others. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { execute } from './steps.mjs';

/**
 * Serves a tarball as the only version of its package, until the process ends. Gives the environment in which npm installs from
 * here. Users install from a registry too, and it takes npm half the time: of a file it unpacks all to read its manifest, twice.
 */
export async function serveTarball(tarball, manifest, integrity) {
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
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  return {
    npm_config_registry: `http://127.0.0.1:${server.address().port}/`,
    npm_config_noproxy: [process.env.NO_PROXY ?? process.env.no_proxy ?? '', '127.0.0.1'].filter(Boolean).join(','),
    npm_config_prefer_offline: 'true',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
  };
}
