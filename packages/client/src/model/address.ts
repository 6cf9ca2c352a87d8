/** What a web address may be for: a database has a path and nothing after it, an endpoint is taken as it is. */
export type AddressOf = 'database' | 'endpoint';

/**
 * What is wrong with an address, to be said after the name of its option; undefined when it may be used. The words never
 * hold the address: a password may be in it (S7).
 */
export function wrongInAddress(url: unknown, of: AddressOf): string | undefined {
  const parsed = typeof url === 'string' ? parsedUrl(url) : undefined;
  if (typeof url !== 'string' || parsed === undefined) return `must be the whole address of ${articled[of]}`;
  if (!/^https?:$/.test(parsed.protocol)) return 'must begin with http or https';
  if (parsed.username !== '' || parsed.password !== '') {
    return `must not hold credentials: use ${of === 'database' ? '`auth` of the client' : '`headers`'}`;
  }
  if (of === 'endpoint') return undefined;
  if (parsed.pathname.replace(/\//g, '') === '') {
    return 'names no database: it must look like https://couch.example/records';
  }
  return /[?#]/.test(url) ? 'must end with the name of the database, without `?` or `#`' : undefined;
}

const articled: Readonly<Record<AddressOf, string>> = { database: 'a database', endpoint: 'an endpoint' };

function parsedUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}
