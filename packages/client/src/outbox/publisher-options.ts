import { AfieldError } from '../model/errors.js';

/** Checks what every publisher is given. Throws `AfieldError` (`invalid_option`), never with the address in its words. */
export function checkPublisher(what: string, name: string, url: string): void {
  if (typeof name !== 'string' || !/^[A-Za-z0-9_.-]{1,64}$/.test(name)) {
    throw wrong(`${what}: \`name\` must be 1 to 64 of A-Z a-z 0-9 _ . -`);
  }
  let address: URL;
  try {
    address = new URL(url);
  } catch {
    throw wrong(`${what}: \`url\` must be a whole address`);
  }
  if (!/^https?:$/.test(address.protocol)) throw wrong(`${what}: \`url\` must begin with http or https`);
  if (address.username !== '' || address.password !== '') throw wrong(`${what}: \`url\` must not hold credentials`);
}

function wrong(what: string): AfieldError {
  return new AfieldError('invalid_option', `${what}.`);
}
