import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { Doc } from '../model/json.js';
import { childOf } from '../model/revision.js';
import type { Mark } from './tree.js';

/**
 * A deletion beside what follows a revision: it says to all devices that nothing up to there would be lost. Its name is
 * made of what it marks: written twice, or by two tabs, it is one revision. A deletion never wins over a live version.
 */
export function markOf(id: string, { ancestors }: Mark): Doc {
  const [marked = ''] = ancestors;
  const name = bytesToHex(sha256(utf8ToBytes(`afield answered ${id} ${marked}`))).slice(0, 32);
  return childOf(ancestors, name, { _id: id, _deleted: true });
}
