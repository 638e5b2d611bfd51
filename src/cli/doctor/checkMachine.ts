import { statSync } from 'node:fs';
import { SDK_VERSION } from '../../client/connection/connect.js';
import { CredentialStore } from '../../transport/credentials.js';
import { packageVersion } from '../../support/packageVersion.js';
import { ok, warning, wrong, type Finding } from './Check.js';

const OLDEST = [20, 18] as const;

/** Versions and credentials: what can be told without asking anybody. */
export async function checkMachine(): Promise<Finding[]> {
  return [
    nodeVersion(),
    ok('tinker-rx', `${packageVersion()}, speaks the protocol of SDK ${SDK_VERSION}`),
    credential(),
    ...proxies(),
  ];
}

function nodeVersion(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const recent = major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
  return recent
    ? ok('Node', process.versions.node)
    : wrong('Node', process.versions.node, `Install Node ${OLDEST.join('.')} or newer.`);
}

/** Where the credential comes from, in the order in which they win; never the credential itself. */
function credential(): Finding {
  const { TINKER_API_KEY: key = '', TINKER_CREDENTIAL_CMD: command = '' } = process.env;
  if (key !== '') {
    if (/\s/.test(key))
      return wrong('Key', 'TINKER_API_KEY holds white space', 'Copy the key again, without spaces or line ends.');
    return /^(tml-|eyJ)/.test(key)
      ? ok('Key', 'from TINKER_API_KEY')
      : wrong('Key', "TINKER_API_KEY does not begin with 'tml-'", 'Set it to a key of the Tinker console.');
  }
  if (command !== '') return ok('Key', 'from TINKER_CREDENTIAL_CMD');
  const store = new CredentialStore();
  try {
    if (store.defaultKey() === undefined)
      return wrong('Key', 'none', 'Log in with tinker-rx auth login, or set TINKER_API_KEY.');
  } catch (error) {
    return wrong('Key', (error as Error).message, 'Repair or remove that file, then tinker-rx auth login.');
  }
  const open = process.platform !== 'win32' && (statSync(store.path).mode & 0o077) !== 0;
  return open
    ? warning('Key', `stored in ${store.path}, which others can read`, `chmod 600 ${store.path}`)
    : ok('Key', `stored in ${store.path}`);
}

function proxies(): Finding[] {
  const names = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'].filter((name) => process.env[name]);
  return names.length === 0 ? [] : [ok('Proxy', `${names.join(', ')} set`)];
}
