import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { answerPreflight, isPreflight } from '../cors.js';
import { prepared, type Answer, type HttpAnswer, type UpstreamAnswer } from './answer.js';
import { captivePortalAnswer } from './captive-portal.js';
import { createControl } from './control.js';
import { Listener } from './listener.js';
import { readRequest, type ProxyRequest } from './request.js';
import { RequestLog, type LoggedRequest } from './request-log.js';
import { RuleBook, type ActiveRule, type FaultAction, type FaultRule } from './rules.js';
import { Upstream, type RequestChange } from './upstream.js';
import { writeAnswer, writeStream, type WriteOptions } from './write.js';

/** Sends the request to the server, changed or as it is, and gives the true answer. Each call does the work again. */
export type Forward = (change?: RequestChange) => Promise<UpstreamAnswer>;

/** Code that answers requests in the server's place. `undefined`: the true answer goes back. */
export type Interceptor = (request: ProxyRequest, forward: Forward) => Promise<Answer | undefined> | Answer | undefined;

/**
 * `refused`: nothing listens on the port, as if the server were down. `reset`: connections are taken and reset at once.
 * `false`: no outage.
 */
export type Outage = 'refused' | 'reset' | false;

/** Where the proxy listens and what it stands in front of. */
export interface FaultProxyOptions {
  /** Address of the server. Credentials in it are left out: clients send their own. */
  readonly upstream: string;
  /** Port on 127.0.0.1; 0, the default, takes a free one. */
  readonly port?: number;
  /** Port of the control API on 127.0.0.1; 0, the default, takes a free one. */
  readonly controlPort?: number;
}

/** A running proxy. */
export interface FaultProxy {
  /** Address for clients, without a slash at the end. */
  readonly url: string;
  /** Address of the control API, without a slash at the end; its paths begin with `/__faults`. */
  readonly controlUrl: string;
  /** Address of the server behind, without credentials: requests to it pass no fault. */
  readonly upstreamUrl: string;
  /** Adds a rule and gives its id. @throws InvalidRuleError */
  addRule(rule: FaultRule): string;
  /** Whether there was such a rule. */
  removeRule(id: string): boolean;
  clearRules(): void;
  rules(): readonly ActiveRule[];
  /** Starts or ends an outage; open connections are reset. Resolves once the port is closed or open again. */
  setOutage(outage: Outage): Promise<void>;
  outage(): Outage;
  /**
   * Adds code that may answer requests; gives the function that takes it away again. The first one that gives an
   * answer decides. Rules come before: they act between the client and this code.
   */
  intercept(interceptor: Interceptor): () => void;
  /** Calls a function with each request before anything happens to it; gives the function that ends this. */
  onRequest(listener: (request: ProxyRequest) => void): () => void;
  /** How many requests there were, by `METHOD path` (path without query); preflights are not counted. */
  requestCounts(): Record<string, number>;
  /** The requests in their order, the latest 10,000. */
  requests(): readonly LoggedRequest[];
  /** What interceptors and listeners threw, oldest first. The client got a 500 with `interceptor_failed`. */
  errors(): readonly unknown[];
  /** No rules, no interceptors, no listeners, no outage, empty log: as if it had just started. */
  reset(): Promise<void>;
  /** Resets open connections and frees both ports. A second call does nothing. */
  close(): Promise<void>;
}

/**
 * Starts a proxy that passes everything on to a server and, when told so, fails in the ways networks do.
 * Connections are not kept for a second request: browsers silently repeat a request that a kept connection lost,
 * and a fault would go unseen.
 * @throws DevServerError with code `start_failed` or `invalid_argument`
 */
export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const proxy = new RunningProxy(options);
  await proxy.start();
  return proxy;
}

class RunningProxy implements FaultProxy {
  readonly #upstream: Upstream;
  readonly #listener: Listener;
  readonly #control: Listener;
  readonly #rules = new RuleBook();
  readonly #log = new RequestLog();
  readonly #interceptors = new Set<{ readonly run: Interceptor }>();
  readonly #listeners = new Set<{ readonly run: (request: ProxyRequest) => void }>();
  readonly #errors: unknown[] = [];
  #isClosed = false;
  #outage: Outage = false;
  /** Changes of the outage, one after the other. */
  #switching: Promise<void> = Promise.resolve();

  constructor({ upstream, port = 0, controlPort = 0 }: FaultProxyOptions) {
    this.#upstream = new Upstream(upstream);
    this.#listener = new Listener(port, (request, response) => void this.#serve(request, response));
    this.#control = new Listener(controlPort, createControl(this, this.#log));
  }

  async start(): Promise<void> {
    await this.#listener.open();
    await this.#control.open().catch(async (error: unknown) => {
      await this.close();
      throw error;
    });
  }

  get url(): string {
    return `http://127.0.0.1:${String(this.#listener.port)}`;
  }

  get controlUrl(): string {
    return `http://127.0.0.1:${String(this.#control.port)}`;
  }

  get upstreamUrl(): string {
    return this.#upstream.url;
  }

  addRule(rule: FaultRule): string {
    return this.#rules.add(rule);
  }

  removeRule(id: string): boolean {
    return this.#rules.remove(id);
  }

  clearRules(): void {
    this.#rules.clear();
  }

  rules(): readonly ActiveRule[] {
    return this.#rules.list();
  }

  outage(): Outage {
    return this.#outage;
  }

  setOutage(outage: Outage): Promise<void> {
    this.#outage = outage;
    const change = async (): Promise<void> => {
      this.#listener.resetsConnections = outage === 'reset';
      if (outage === 'refused' || this.#isClosed) await this.#listener.close();
      else await this.#listener.reopen();
    };
    this.#switching = this.#switching.then(change, change);
    return this.#switching;
  }

  intercept(run: Interceptor): () => void {
    return added(this.#interceptors, { run });
  }

  onRequest(run: (request: ProxyRequest) => void): () => void {
    return added(this.#listeners, { run });
  }

  requestCounts(): Record<string, number> {
    return this.#log.counts();
  }

  requests(): readonly LoggedRequest[] {
    return this.#log.entries();
  }

  errors(): readonly unknown[] {
    return [...this.#errors];
  }

  async reset(): Promise<void> {
    this.#rules.clear();
    this.#interceptors.clear();
    this.#listeners.clear();
    this.#errors.length = 0;
    this.#log.clear();
    if (this.#outage !== false) await this.setOutage(false);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#switching.catch(() => undefined);
    await Promise.all([this.#listener.close(), this.#control.close(), this.#upstream.close()]);
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    response.shouldKeepAlive = false;
    if (isPreflight(incoming)) return answerPreflight(incoming, response);
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    try {
      const request = await readRequest(incoming);
      this.#observe(request);
      await this.#act(request, response, gone.signal);
    } catch {
      // The client went away, the upstream answer broke off, or the proxy closes: the connection ends the same way.
      resetConnection(response);
    }
  }

  #observe(request: ProxyRequest): void {
    this.#log.record(request);
    for (const { run } of this.#listeners) {
      try {
        run(request);
      } catch (error) {
        this.#errors.push(error);
      }
    }
  }

  /** Rules first (delays add up, the first other fault decides), then interceptors, then the server. */
  async #act(request: ProxyRequest, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const actions = this.#rules.actionsFor(request);
    for (const action of actions) if (action.type === 'delay') await wait(action.ms, undefined, { signal });
    const slow = actions.find((action) => action.type === 'slow');
    const write = { origin: request.headers.origin, bytesPerSecond: slow?.bytesPerSecond, signal };
    const fault = actions.find((action) => action.type !== 'delay' && action.type !== 'slow');
    if (fault !== undefined) return this.#fail(fault, request, response, write);
    if (this.#interceptors.size > 0) return this.#write(response, await this.#work(request, signal), write);
    const answer = await this.#upstream
      .stream(request, {}, signal)
      .catch((error: unknown) => unreachable(error, signal));
    if ('contentLength' in answer) return writeStream(response, answer, write);
    return writeAnswer(response, prepared(answer), write);
  }

  async #fail(fault: FaultAction, request: ProxyRequest, response: ServerResponse, write: WriteOptions): Promise<void> {
    if ('commit' in fault && fault.commit === true) await this.#work(request, write.signal);
    switch (fault.type) {
      case 'answer':
        return this.#write(response, answerOf(fault), { ...write, cors: fault.cors ?? true });
      case 'captive-portal':
        return this.#write(response, captivePortalAnswer(fault.status), { ...write, cors: fault.cors ?? true });
      case 'cut':
        return this.#write(response, cut(await this.#work(request, write.signal), fault.share), write);
      case 'refused':
        return this.setOutage('refused');
      default:
        return resetConnection(response);
    }
  }

  /** What the client would get without rules. */
  async #work(request: ProxyRequest, signal: AbortSignal): Promise<Answer> {
    let trueAnswer: Promise<UpstreamAnswer> | undefined;
    const forward: Forward = (change = {}) => {
      trueAnswer = this.#upstream.whole(request, change, signal);
      // An interceptor may let go of the answer; its failure must not end the process then.
      trueAnswer.catch(() => undefined);
      return trueAnswer;
    };
    for (const { run } of this.#interceptors) {
      try {
        const answer = await run(request, forward);
        if (answer !== undefined) return answer;
      } catch (error) {
        if (signal.aborted) throw error;
        this.#errors.push(error);
        return failure(500, 'interceptor_failed', error);
      }
    }
    try {
      return await (trueAnswer ?? forward());
    } catch (error) {
      return unreachable(error, signal);
    }
  }

  async #write(response: ServerResponse, answer: Answer, options: WriteOptions): Promise<void> {
    if ('reset' in answer) return resetConnection(response);
    if ('cutAt' in answer) return writeAnswer(response, prepared(answer.answer), { ...options, cutAt: answer.cutAt });
    return writeAnswer(response, prepared(answer), options);
  }
}

function added<T>(set: Set<T>, member: T): () => void {
  set.add(member);
  return () => {
    set.delete(member);
  };
}

function answerOf({ status, headers = {}, body, text }: Extract<FaultAction, { type: 'answer' }>): HttpAnswer {
  if (body === undefined) return { status, headers, body: text ?? '' };
  const json = { 'content-type': 'application/json', ...headers };
  return { status, headers: json, body: `${JSON.stringify(body)}\n` };
}

function cut(answer: Answer, share: number): Answer {
  return 'reset' in answer ? answer : { cutAt: share, answer: 'cutAt' in answer ? answer.answer : answer };
}

/** A server that can't be reached is told apart from a fault that was asked for. */
function unreachable(error: unknown, signal: AbortSignal): HttpAnswer {
  if (signal.aborted) throw error;
  return failure(502, 'upstream_unreachable', error);
}

function failure(status: number, error: string, cause: unknown): HttpAnswer {
  return { status, body: { error, reason: cause instanceof Error ? cause.message : String(cause) } };
}

function resetConnection(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
}
