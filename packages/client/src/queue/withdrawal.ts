import { endStates } from '../model/states.js';
import type { Queue } from './queue.js';
import { sequenceOf, type Header } from './stored.js';

/** Ends a bulk operation that came too late, unless it runs already or is at its end. Answers with it as it is then. */
export async function withdraw(
  queue: Queue,
  { _id }: Header,
  marks: Partial<Pick<Header, 'continuedBy' | 'withdrawn'>> = {},
): Promise<Header> {
  const { header } = await queue.change(sequenceOf(_id), (stored) =>
    stored.attempts > 0 || endStates.has(stored.state)
      ? undefined
      : { ...stored, ...marks, state: 'cancelled', wait: null },
  );
  return header;
}
