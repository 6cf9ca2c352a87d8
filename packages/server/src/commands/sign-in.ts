import { serverAddress, type Arguments } from '../arguments.js';
import type { World } from '../command.js';
import { Couch } from '../couch.js';
import { credentialsFrom } from '../credentials.js';

/** The server that `--url` names, signed in to. The answer says what roles we have there. */
export async function signIn(
  given: Arguments,
  world: World,
  wait: (couch: Couch) => Promise<void> = () => Promise.resolve(),
): Promise<{ readonly couch: Couch; readonly roles: readonly string[] }> {
  const url = serverAddress(given.text('url'));
  if (isOpen(url)) world.say('Note: http:// sends the password as it is. Use https:// outside of your own network.');
  const couch = new Couch(url, await credentialsFrom(world.environment, world.ask), world.fetch);
  await wait(couch);
  return { couch, ...(await couch.greet()) };
}

/** Whether a password on its way can be read by others: no TLS, and not this machine. */
function isOpen(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}
