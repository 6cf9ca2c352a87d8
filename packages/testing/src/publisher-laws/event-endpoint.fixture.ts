import type { DocumentEvent } from '@afield/client';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A small endpoint for events, as an app's author would write it: one event a request, stored under its key once. */
export interface EventEndpoint {
  readonly url: string;
  /** In the order in which they arrived. */
  readonly events: readonly DocumentEvent[];
  readonly refused: Set<string>;
  close(): Promise<void>;
}

/** `token` is what `Authorization` must carry. */
export async function startEventEndpoint(token: string): Promise<EventEndpoint> {
  const bodies = new Map<string, string>();
  const events: DocumentEvent[] = [];
  const refused = new Set<string>();
  const statusOf = (request: IncomingMessage, body: string): number => {
    if (request.headers.authorization !== `Bearer ${token}`) return 401;
    const quoted = /^"([^"\\]*)"$/.exec(String(request.headers['idempotency-key']))?.[1];
    if (request.method !== 'POST' || quoted === undefined) return 400;
    const key = decodeURIComponent(quoted);
    if (refused.has(key)) return 403;
    const before = bodies.get(key);
    if (before !== undefined) return before === body ? 200 : 422;
    bodies.set(key, body);
    const event = JSON.parse(body, (field, value: unknown) => (field === 'v' ? undefined : value)) as DocumentEvent;
    events.push(event);
    return 201;
  };
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      response.writeHead(statusOf(request, Buffer.concat(parts).toString())).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/events`,
    events,
    refused,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}
