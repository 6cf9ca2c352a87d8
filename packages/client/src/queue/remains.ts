import { removed, type Queue } from './queue.js';
import { failurePrefix, recordPrefix, reportId, sequenceOf, type Header, type Remains } from './stored.js';

const removedPerWrite = 500;

/** What has to be known of a bulk operation to find all of it when its header is gone. */
export function remainsOf({ _id, id, payload, subjects, plan }: Header): Remains {
  return {
    s: sequenceOf(_id),
    id,
    payload,
    ...(subjects === null || Array.isArray(subjects) ? {} : { digest: subjects.digest }),
    ...(plan === undefined ? {} : { request: plan.request }),
  };
}

/**
 * Removes what a bulk operation without a header has left: what belongs to its number, and its content, unless another one
 * shares that. A portion at a time. Answers with the names of all that is gone, or undefined when the client was closed
 * meanwhile.
 */
export async function removeRemains(
  left: Remains,
  { queue, breathe, closed }: { queue: Queue; breathe: () => Promise<void>; closed: AbortSignal },
): Promise<readonly string[] | undefined> {
  // A plan that is queued anew keeps its request, and a second version that a person has chosen its content.
  const shared = new Set(queue.headers().flatMap((header) => contentOf(remainsOf(header))));
  const own = contentOf(left).filter((name) => !shared.has(name));
  const gone: string[] = [];
  for (const name of [reportId(left.s), failurePrefix(left.s), recordPrefix(left.s), ...own]) {
    for (;;) {
      if (closed.aborted) return undefined;
      const names = await queue.names(name, name.endsWith(':') ? `${name}\uffff` : name, removedPerWrite);
      if (names.length === 0) break;
      await queue.write(names.map(({ id, rev }) => removed(id, rev)));
      gone.push(...names.map(({ id }) => id));
      await breathe();
    }
  }
  return gone;
}

/** Its content: the request of its plan; payloads and digests, whose names begin so (those too that a plan has declared). */
function contentOf({ payload, digest, request }: Remains): string[] {
  const declared = request?.replace(/^q:/, 'd:');
  return [
    payload,
    payload.replace(/^p:/, 'd:'),
    ...(digest === undefined ? [] : [digest]),
    ...(request === undefined ? [] : [request]),
    ...(declared === undefined ? [] : [`${declared}:`]),
  ];
}
