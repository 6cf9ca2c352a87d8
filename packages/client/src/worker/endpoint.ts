import type { z } from 'zod/mini';
import { AfieldError } from '../model/errors.js';
import { greeting, type Greeting } from './messages.js';

/** What both sides of a worker have: a `Worker`, a `MessagePort` (of a SharedWorker), or the global object of a worker. */
export interface Endpoint {
  postMessage(message: unknown, transfer: Transferable[]): void;
  addEventListener(type: 'message' | 'error', listener: (event: Event) => void): void;
  removeEventListener(type: 'message' | 'error', listener: (event: Event) => void): void;
  /** Ports must be started. */
  start?(): void;
}

/** Throws `AfieldError` (`invalid_option`) for what cannot be spoken to. */
export function assertEndpoint(endpoint: unknown, otherwise: string): void {
  const { postMessage, addEventListener } = (endpoint ?? {}) as Partial<Endpoint>;
  if (typeof postMessage === 'function' && typeof addEventListener === 'function') return;
  throw new AfieldError('invalid_option', otherwise);
}

/** The worker that this runs in. */
export function ownEndpoint(): Endpoint {
  return globalThis as unknown as Endpoint;
}

/** Hears what of ours is said on an endpoint, and nothing else; answers with a function that ends it. */
export function hearGreetings(
  endpoint: Endpoint,
  hear: (said: Greeting, port: MessagePort | undefined) => void,
): () => void {
  const listener = (event: Event): void => {
    const { data, ports } = event as MessageEvent;
    const said = greeting.safeParse(data);
    if (said.success) hear(said.data, ports[0]);
  };
  endpoint.addEventListener('message', listener);
  endpoint.start?.();
  return () => {
    endpoint.removeEventListener('message', listener);
  };
}

export function greet(endpoint: Endpoint, said: Greeting, transfer: Transferable[] = []): void {
  endpoint.postMessage(said, transfer);
}

/** Hears what is said on a port; `other` what has not this shape. Answers with a function that ends it. */
export function hearOn<Message>(
  port: MessagePort,
  shape: z.ZodMiniType<Message>,
  hear: (message: Message) => void,
  other: (data: unknown) => void = () => undefined,
): () => void {
  const listener = ({ data }: MessageEvent): void => {
    const message = shape.safeParse(data);
    if (message.success) hear(message.data);
    else other(data);
  };
  port.addEventListener('message', listener);
  port.start();
  return () => {
    port.removeEventListener('message', listener);
  };
}
