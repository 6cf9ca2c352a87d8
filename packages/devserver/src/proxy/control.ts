import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import * as z from 'zod';
import { answerPreflight, corsHeaders, isPreflight } from '../cors.js';
import type { FaultProxy } from './fault-proxy.js';
import { readRequest, type ProxyRequest } from './request.js';
import type { RequestLog } from './request-log.js';
import { checked, InvalidRuleError, type FaultRule } from './rules.js';

interface ControlAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** Body of `POST /__faults/outage`; `mode` is `refused` by default. */
const outageOrder = z.strictObject({ on: z.boolean(), mode: z.enum(['refused', 'reset']).optional() });

/** The HTTP control API of a proxy. All bodies are JSON; pages of any origin may use it. */
export function createControl(proxy: FaultProxy, log: RequestLog): RequestListener {
  return (incoming, response) => {
    if (isPreflight(incoming)) return answerPreflight(incoming, response);
    readRequest(incoming)
      .then((request) => answer(request, proxy, log))
      .catch(errorAnswer)
      .then(
        (result) => send(incoming, response, result),
        () => response.destroy(),
      );
  };
}

async function answer(request: ProxyRequest, proxy: FaultProxy, log: RequestLog): Promise<ControlAnswer> {
  switch (`${request.method} ${request.path}`) {
    case 'GET /__faults':
      return ok({ outage: proxy.outage(), rules: proxy.rules() });
    case 'POST /__faults':
      return { status: 201, body: { ok: true, id: proxy.addRule(json(request) as FaultRule) } };
    case 'DELETE /__faults':
      proxy.clearRules();
      return ok();
    case 'GET /__faults/outage':
      return ok({ outage: proxy.outage() });
    case 'POST /__faults/outage':
      return setOutage(proxy, request);
    case 'GET /__faults/log':
      return ok({ counts: log.counts() });
    case 'DELETE /__faults/log':
      log.clear();
      return ok();
    default:
      return removeRule(proxy, request);
  }
}

async function setOutage(proxy: FaultProxy, request: ProxyRequest): Promise<ControlAnswer> {
  const { on, mode = 'refused' } = checked(outageOrder, json(request));
  await proxy.setOutage(on ? mode : false);
  return ok({ ok: true, outage: proxy.outage() });
}

function removeRule(proxy: FaultProxy, { method, path }: ProxyRequest): ControlAnswer {
  const id = /^\/__faults\/(rule-\d+)$/.exec(path)?.[1];
  if (method === 'DELETE' && id !== undefined && proxy.removeRule(id)) return ok();
  return { status: 404, body: { error: 'not_found', reason: `There is no ${method} ${path} here.` } };
}

function json(request: ProxyRequest): unknown {
  try {
    return request.json();
  } catch {
    throw new InvalidRuleError([{ path: 'body', message: 'is no JSON' }]);
  }
}

function errorAnswer(error: unknown): ControlAnswer {
  if (error instanceof InvalidRuleError) {
    return { status: 400, body: { error: error.code, reason: error.message, issues: error.issues } };
  }
  return { status: 500, body: { error: 'failed', reason: error instanceof Error ? error.message : String(error) } };
}

function ok(body: unknown = { ok: true }): ControlAnswer {
  return { status: 200, body };
}

function send(incoming: IncomingMessage, response: ServerResponse, { status, body }: ControlAnswer): void {
  response.writeHead(status, { 'content-type': 'application/json', ...corsHeaders(incoming.headers.origin) });
  response.end(`${JSON.stringify(body)}\n`);
}
