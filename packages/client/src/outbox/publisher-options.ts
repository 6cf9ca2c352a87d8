import { wrongInAddress, type AddressOf } from '../model/address.js';
import { checkNamed, wrongOption, type Taking } from './named-options.js';

/** What is wrong with the name of a publisher, to be said after it; undefined when it may be used. */
export function wrongInPublisherName(name: unknown): string | undefined {
  if (typeof name === 'string' && /^[A-Za-z0-9_.-]{1,64}$/.test(name)) return undefined;
  return 'must be 1 to 64 of A-Z a-z 0-9 _ . -';
}

/** Checks what every publisher is given. Throws `AfieldError` (`invalid_option`), never with the address in its words. */
export function checkPublisher(taking: Taking, options: object, url: AddressOf): void {
  checkNamed(taking, options);
  const { name, url: given } = options as { name?: unknown; url?: unknown };
  const inName = name === undefined ? undefined : wrongInPublisherName(name);
  if (inName !== undefined) throw wrongOption(taking.what, `\`name\` ${inName}`);
  const inUrl = wrongInAddress(given, url);
  if (inUrl !== undefined) throw wrongOption(taking.what, `\`url\` ${inUrl}`);
}
