import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { DevServerError } from '../errors.js';

/** How often and at which distance, in milliseconds, a port is asked for again that was ours before. */
const reopenTries = 50;
const reopenPause = 20;

/** An HTTP server on 127.0.0.1 that can stop listening and listen again on the same port. */
export class Listener {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #port: number;
  #resetsConnections = false;

  constructor(port: number, onRequest: RequestListener) {
    this.#port = port;
    this.#server = createServer({ noDelay: true, requestTimeout: 0, keepAliveTimeout: 0 }, onRequest);
    this.#server.on('connection', (socket) => this.#track(socket));
  }

  get port(): number {
    return this.#port;
  }

  get isListening(): boolean {
    return this.#server.listening;
  }

  /** Whether each new connection is reset at once. */
  set resetsConnections(does: boolean) {
    this.#resetsConnections = does;
    if (does) this.#resetAll();
  }

  /** @throws DevServerError with code `start_failed` */
  async open(): Promise<void> {
    if (this.isListening) return;
    await new Promise<void>((resolve, reject) => {
      const fail = (error: NodeJS.ErrnoException): void => {
        reject(
          new DevServerError(
            'start_failed',
            `Port ${String(this.#port)} can't be used: ${error.code ?? error.message}`,
          ),
        );
      };
      this.#server.once('error', fail);
      this.#server.listen(this.#port, '127.0.0.1', () => {
        this.#server.off('error', fail);
        this.#port = (this.#server.address() as AddressInfo).port;
        resolve();
      });
    });
  }

  /** Listens again; another socket may still hold the port for a moment. */
  async reopen(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.open();
      } catch (error) {
        if (attempt >= reopenTries) throw error;
        await wait(reopenPause);
      }
    }
  }

  /** Stops listening and resets every connection. */
  async close(): Promise<void> {
    if (!this.isListening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#resetAll();
    await closed;
  }

  #track(socket: Socket): void {
    if (this.#resetsConnections) return void socket.resetAndDestroy();
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #resetAll(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }
}
