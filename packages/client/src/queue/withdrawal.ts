import { endStates } from '../model/states.js';
import type { Headers } from './headers.js';
import { sequenceOf, type Header } from './stored.js';

/** Ends a bulk operation that came too late, unless it runs already or is at its end. Answers with it as it is then. */
export async function withdraw(
  headers: Headers,
  { _id }: Header,
  marks: Partial<Pick<Header, 'continuedBy' | 'withdrawn'>> = {},
): Promise<Header> {
  const { header } = await headers.change(sequenceOf(_id), (stored) =>
    stored.attempts > 0 || endStates.has(stored.state)
      ? undefined
      : { ...stored, ...marks, state: 'cancelled', wait: null },
  );
  return header;
}
