import { Refusal, type FakeClock, type MemoryDatabase, type MemoryServer } from '@afield/testing';
import { kindOf } from './documents.js';
import type { RequestFaultKind, Step } from './script.js';

export type RequestFault = Extract<Step, { do: 'fault' }>;

/** What the faults need of the world. */
export interface RequestFaultParts {
  readonly server: MemoryServer;
  readonly records: MemoryDatabase;
  readonly clock: FakeClock;
  /** Someone else edits these documents, now. */
  readonly edit: (ids: readonly string[]) => void;
  readonly note: (line: string) => void;
}

interface Armed {
  readonly fault: RequestFault;
  left: number;
  readonly until: number;
}

interface Seen {
  readonly url: string;
  readonly init: RequestInit;
  readonly isWrite: boolean;
  /** Ids that a bulk write names; empty for everything else. */
  readonly written: readonly string[];
  /** How many documents or keys the body names. */
  readonly count: number;
}

const page = '<!doctype html><html><title>Sign in</title><body>Welcome to the free network</body></html>';

/** The way to the server: what is armed happens to the next requests that it concerns. */
export class RequestFaults {
  readonly #parts: RequestFaultParts;
  #armed: Armed[] = [];
  /** The server takes us for no one, until the app is asked for credentials. */
  sessionIsGone = false;

  constructor(parts: RequestFaultParts) {
    this.#parts = parts;
  }

  arm(fault: RequestFault): void {
    this.#armed.push({ fault, left: fault.times, until: this.#parts.clock.elapsed + fault.forS * 1000 });
  }

  heal(): void {
    this.#armed = [];
  }

  /** One request, and whatever happens to it. */
  async fetch(url: string, init: RequestInit): Promise<Response> {
    init.signal?.throwIfAborted();
    const seen = seenRequest(url, init);
    const fault = this.#next(seen);
    this.#parts.note(
      `${init.method ?? 'GET'} ${new URL(url).pathname} ${seen.written.join(',')}${fault === undefined ? '' : ` !${fault.kind}`}`,
    );
    return fault === undefined ? this.#carryOut(seen) : this.#happen(fault, seen);
  }

  #next(seen: Seen): RequestFault | undefined {
    const { elapsed } = this.#parts.clock;
    this.#armed = this.#armed.filter(({ left, until }) => left > 0 && elapsed < until);
    const armed = this.#armed.find(({ fault }) => concerns(fault, seen));
    if (armed === undefined) return undefined;
    armed.left -= 1;
    return armed.fault;
  }

  async #happen({ kind, size }: RequestFault, seen: Seen): Promise<Response> {
    const share = size / 100;
    switch (kind) {
      case 'network':
        throw new TypeError('fetch failed');
      case 'lost':
        this.#carryOut(seen);
        throw new TypeError('fetch failed');
      case 'lost-then-edited':
        this.#carryOut(seen);
        this.#parts.edit(seen.written);
        throw new TypeError('fetch failed');
      case 'timeout':
        return aborted(seen.init.signal);
      case 'late':
        return this.#late(seen, size * 2000);
      case 'portal':
        return new Response(page, { status: 200, headers: { 'content-type': 'text/html' } });
      case 'redirect':
        return new Response(null, { status: 302, headers: { location: 'http://portal.test/' } });
      case 'status-502-page':
        return new Response(page, { status: 502, headers: { 'content-type': 'text/html' } });
      case 'empty':
        return withText(this.#carryOut(seen), () => '');
      case 'cut':
        return withText(this.#carryOut(seen), (text) => text.slice(0, Math.floor((text.length - 2) * share)));
      case 'short':
        return withRows(this.#carryOut(seen), (rows) => rows.filter((_row, place) => (place * 37 + size) % 100 >= 50));
      case 'shuffled':
        return withRows(this.#carryOut(seen), (rows) => [...rows].reverse());
      case 'rows-trouble-after':
        return this.#withTrouble(seen, size);
      case 'rows-trouble-instead':
        return this.#partly(seen, size, 'internal_server_error');
      case 'rows-unauthorized':
        return this.#partly(seen, size, 'unauthorized');
      case 'rows-of-another':
        if (seen.written.length > 0) this.sessionIsGone = true;
        return this.#partly(seen, size, 'forbidden');
      case 'edit-before':
        this.#parts.edit(seen.written);
        return this.#carryOut(seen);
      default:
        return this.#status(kind);
    }
  }

  #status(kind: RequestFaultKind): Response {
    const wall = this.#parts.clock.wall();
    switch (kind) {
      case 'status-429':
        return refusal(429, 'too_many_requests', { 'retry-after': '700' });
      case 'status-503-date':
        return refusal(503, 'service_unavailable', {
          date: new Date(wall).toUTCString(),
          'retry-after': new Date(wall + 900_000).toUTCString(),
        });
      case 'status-401':
        return refusal(401, 'unauthorized');
      case 'status-403':
        return refusal(403, 'forbidden');
      case 'status-404':
        return refusal(404, 'not_found');
      case 'status-408':
        return refusal(408, 'timeout');
      case 'too-many-413':
        return refusal(413, 'too_large');
      default:
        return refusal(500, 'internal_server_error');
    }
  }

  /** The request is slow on its way: it arrives even when no one waits for it any more. */
  #late(seen: Seen, delayMs: number): Promise<Response> {
    const arrived = new Promise<Response>((resolve) => {
      this.#parts.clock.setTimer(() => {
        this.#parts.note(`late: ${seen.written.join(',')}`);
        resolve(this.#carryOut(seen));
      }, delayMs);
    });
    return Promise.race([arrived, aborted(seen.init.signal)]);
  }

  /** All is done, and some rows say that it is not known. */
  #withTrouble(seen: Seen, size: number): Promise<Response> {
    return withRows(this.#carryOut(seen), (rows) =>
      rows.map((row, place) =>
        seen.written.length > 0 && (place * 37 + size) % 100 < 50
          ? { id: (row as { id?: unknown }).id, error: 'internal_server_error', reason: 'made up' }
          : row,
      ),
    );
  }

  /** Some documents are not written, and their rows say so. */
  async #partly(seen: Seen, size: number, error: string): Promise<Response> {
    if (seen.written.length === 0) return this.#carryOut(seen);
    const given = JSON.parse(String(seen.init.body)) as { docs: { _id: string }[] };
    const isKept = (place: number): boolean => (place * 37 + size) % 100 < 50;
    const left = given.docs.filter((_doc, place) => !isKept(place));
    const rest = seenRequest(seen.url, { ...seen.init, body: JSON.stringify({ ...given, docs: left }) });
    const refused = given.docs
      .filter((_doc, place) => isKept(place))
      .map(({ _id }) => ({ id: _id, error, reason: 'made up' }));
    const answer = this.#carryOut(rest);
    return answer.ok ? withRows(answer, (rows) => [...refused, ...rows]) : answer;
  }

  #carryOut(seen: Seen): Response {
    const { server } = this.#parts;
    const kinds = new Set(seen.written.map(kindOf));
    if (kinds.has('large')) return refusal(413, 'too_large');
    if (kinds.has('odd')) return refusal(400, 'bad_request');
    const isSession = seen.url.endsWith('/_session');
    const { status, body } = server.answer(seen.url, isSession && this.sessionIsGone ? {} : seen.init);
    return new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } });
  }
}

/** What the server says of a document that it refuses for good. */
export function refusedForGood(doc: Readonly<Record<string, unknown>>): Refusal | undefined {
  return kindOf(String(doc['_id'])) === 'refused' ? new Refusal(403, 'forbidden', 'not this one') : undefined;
}

function concerns({ on, kind }: RequestFault, seen: Seen): boolean {
  if (kind === 'too-many-413' && seen.count < 2) return false; // a single document that is too large is refused for good
  if (kind === 'edit-before' && seen.written.length === 0) return false;
  return on === 'any' || (on === 'write') === seen.isWrite;
}

function seenRequest(url: string, init: RequestInit): Seen {
  const { pathname } = new URL(url);
  const isWrite = pathname.endsWith('/_bulk_docs');
  const body = typeof init.body === 'string' ? (JSON.parse(init.body) as Record<string, unknown>) : {};
  const docs = (Array.isArray(body['docs']) ? body['docs'] : []) as { _id?: unknown }[];
  const keys = Array.isArray(body['keys']) ? body['keys'] : [];
  const written = isWrite && pathname.startsWith('/records/') ? docs.map(({ _id }) => String(_id)) : [];
  return { url, init, isWrite, written, count: Math.max(docs.length, keys.length) };
}

function refusal(status: number, error: string, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify({ error, reason: 'made up' }), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  });
}

async function withText(answer: Response, change: (text: string) => string): Promise<Response> {
  return new Response(change(await answer.text()), { status: answer.status, headers: answer.headers });
}

/** Changes the rows of a bulk write or of a read by keys; other answers stay as they are. */
function withRows(answer: Response, change: (rows: readonly unknown[]) => readonly unknown[]): Promise<Response> {
  return withText(answer, (text) => {
    const json = JSON.parse(text) as unknown;
    if (Array.isArray(json)) return JSON.stringify(change(json));
    const rows = (json as { rows?: unknown }).rows;
    return Array.isArray(rows) ? JSON.stringify({ ...(json as object), rows: change(rows) }) : text;
  });
}

/** Never answers; rejects when the one who waits gives up. */
function aborted(signal: AbortSignal | null | undefined): Promise<Response> {
  return new Promise((_resolve, reject) => {
    signal?.addEventListener('abort', () => {
      reject(signal.reason as Error);
    });
  });
}
