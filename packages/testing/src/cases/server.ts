import { serverUnderTest, type ProxyRequest, type Answer as ProxyAnswer, type UpstreamAnswer } from '@afield/devserver';
import type { Answer, Forward, Outcome } from './interception.js';
import { seenRequest, type SeenRequest } from './traffic.js';

/** The server that all cases of a run use, one after another, with a proxy in front. */
export interface CaseServer {
  /** The server itself, past the proxy. */
  readonly url: string;
  readonly proxyUrl: string;
  readonly username: string;
  readonly password: string;
  /** The header that signs in as its admin. */
  readonly authorization: string;
  /** What it is: `embedded`, or CouchDB with its version. */
  readonly software: string;
  /** From now on this handles what goes through the proxy. */
  intercept(handle: (request: SeenRequest, forward: Forward) => Promise<Outcome>): void;
  /** What went wrong in the proxy itself since the last call. */
  takeProblems(): readonly string[];
  close(): Promise<void>;
}

/** Starts a server (or takes the CouchDB at COUCHDB_URL) with a proxy in front of it. */
export async function startCaseServer(): Promise<CaseServer> {
  const { url, directUrl, proxy, admin, software, isEmbedded, close } = await serverUnderTest();
  const { username, password } = admin;
  let stop = (): void => undefined;
  let seenErrors = 0;
  return {
    url: directUrl,
    proxyUrl: url,
    username,
    password,
    authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
    software: isEmbedded ? 'the embedded server' : `CouchDB ${software.version}`,
    intercept(handle) {
      stop();
      stop = proxy.intercept((request, forward) => through(request, forward, handle));
    },
    takeProblems() {
      const fresh = proxy.errors().slice(seenErrors);
      seenErrors += fresh.length;
      return fresh.map((error) => `the fault proxy: ${error instanceof Error ? error.message : String(error)}`);
    },
    close,
  };
}

async function through(
  request: ProxyRequest,
  forward: (change?: { body: string }) => Promise<UpstreamAnswer>,
  handle: (request: SeenRequest, forward: Forward) => Promise<Outcome>,
): Promise<ProxyAnswer> {
  const trueAnswers = new Map<Answer, UpstreamAnswer>();
  const outcome = await handle(
    seenRequest(request.method, request.url, request.body.toString('utf8')),
    async (body) => {
      const whole = await forward(body === undefined ? undefined : { body });
      const answer = { status: whole.status, headers: texts(whole.headers), body: whole.body.toString('utf8') };
      trueAnswers.set(answer, whole);
      return answer;
    },
  );
  // A refused port or an unknown name end a fetch in the same way as a reset: without an answer.
  if ('networkError' in outcome) return { reset: true };
  // What was not changed goes back byte by byte: an attachment is no text.
  const answer = trueAnswers.get(outcome) ?? outcome;
  if (outcome.status !== hiddenStatus) return answer;
  return { ...outcome, status: 200, headers: { ...outcome.headers, [statusHeader]: String(hiddenStatus) } };
}

/** Node's fetch makes a network error of this status, where a browser's may show it: it travels in a header. */
const hiddenStatus = 407;
const statusHeader = 'x-status-of-the-case';

/** A fetch that shows the status of every answer as the case gives it. */
export const fetchOfCases: typeof fetch = async (input, init) => {
  const answer = await fetch(input, init);
  const status = answer.headers.get(statusHeader);
  if (status === null) return answer;
  return new Response(await answer.arrayBuffer(), { status: Number(status), headers: answer.headers });
};

function texts(headers: Readonly<Record<string, string | readonly string[]>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === 'string' ? value : value.join(', ')]),
  );
}
