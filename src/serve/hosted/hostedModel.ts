import { firstValueFrom } from 'rxjs';
import { resolveCredential } from '../../transport/auth.js';
import { hostedEndpoints } from '../traffic/serveUpstream.js';
import type { HostedModel } from './streamHosted.js';

/** A model by name behind the hosted service's endpoint, or another one with Anthropic's API. @throws ValidationError without a key */
export async function hostedModel(
  model: string,
  { endpoint = 'hosted', apiKey }: { readonly endpoint?: string | undefined; readonly apiKey?: string | undefined },
): Promise<HostedModel> {
  const url = endpoint === 'hosted' ? hostedEndpoints().anthropic : endpoint.replace(/\/+$/, '').replace(/\/v1$/, '');
  const credential = resolveCredential({ apiKey, isHosted: false, environment: process.env });
  try {
    return { url, model, apiKey: await firstValueFrom(credential.token()) };
  } finally {
    credential.stop();
  }
}
