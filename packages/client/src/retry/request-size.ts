/*
 * The size of requests (R11): kept under a limit before the server says so. A large request is lost as a whole on a bad
 * network, and servers and proxies refuse it: one megabyte is the usual limit of proxies, 8 MB that of CouchDB.
 */

/** The largest body of a request in bytes, when the app does not say otherwise. */
export const defaultRequestBytes = 1_000_000;

/** Something that is sent in a list, with its JSON as it is sent. */
export interface Sendable {
  /** Id of the document, or whatever else must not stand twice in one request. */
  readonly _id: string;
  readonly text: string;
  /** Length of the text in UTF-8. */
  readonly bytes: number;
}

/** `text` is JSON. */
export function sendable(_id: string, text: string): Sendable {
  return { _id, text, bytes: byteLength(text) };
}

/** What stands around the list in a body: `{"docs":[` and `]}`. */
export interface Frame {
  readonly before: string;
  readonly after: string;
}

/** The body of a request. */
export function bodyOf(frame: Frame, items: readonly Sendable[]): string {
  return frame.before + items.map(({ text }) => text).join(',') + frame.after;
}

/** The length of that body in UTF-8, without making it. */
export function bodyBytes(frame: Frame, items: readonly Sendable[]): number {
  const around = byteLength(frame.before) + byteLength(frame.after) + Math.max(items.length - 1, 0);
  return items.reduce((sum, { bytes }) => sum + bytes, around);
}

/**
 * The items cut into requests, in their order. Each stays within the limit, as it is at that moment, but for an item
 * that is larger alone; none holds one id twice: two operations on a document never go into one write (R10).
 */
export function* inRequests<Item extends Sendable>(
  items: readonly Item[],
  frame: Frame,
  limit: { readonly bytes: number },
): Generator<readonly Item[]> {
  const around = bodyBytes(frame, []);
  for (let from = 0; from < items.length;) {
    const ids = new Set<string>();
    let bytes = around;
    let to = from;
    for (let next = items[to]; next !== undefined; next = items[++to]) {
      bytes += next.bytes + (to > from ? 1 : 0);
      if (to > from && (bytes > limit.bytes || ids.has(next._id))) break;
      ids.add(next._id);
    }
    yield items.slice(from, to);
    from = to;
  }
}

/**
 * How large a request may be now. A request that was refused for its size lowers the limit to half of that size, for
 * all later requests; each request that nearly fills it and gets through lets it grow a little, up to the option.
 */
export class RequestLimit {
  readonly #most: number;
  #bytes: number;

  constructor(mostBytes = defaultRequestBytes) {
    this.#most = mostBytes;
    this.#bytes = mostBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** A request of this size got 413, and it was not for a single document in it. */
  refused(bytes: number): void {
    this.#bytes = Math.max(1, Math.min(this.#bytes, Math.floor(bytes / 2)));
  }

  /** A request of this size was taken. A small one proves nothing. */
  taken(bytes: number): void {
    if (bytes < this.#bytes / 2) return;
    this.#bytes = Math.min(this.#most, this.#bytes + Math.ceil(this.#bytes / 32));
  }
}

const encoder = new TextEncoder();

function byteLength(text: string): number {
  return encoder.encode(text).length;
}
