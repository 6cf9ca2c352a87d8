import type { Json } from '@afield/client';
import { z } from 'zod/mini';

/** Any JSON, kept as it was given: nothing is copied, so that a key such as `__proto__` stays a plain key. */
export const AnyJson = z.custom<Json>(isJson, 'must be JSON');

/** Looks at every value without recursion: a lineage of thousands of levels is refused later, by name, not by a crash. */
function isJson(value: unknown): boolean {
  const open: { value: unknown; leave?: boolean }[] = [{ value }];
  const above = new Set<object>();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (isSimple(next.value)) continue;
    if (typeof next.value !== 'object' || next.value === null) return false;
    if (next.leave === true) {
      above.delete(next.value);
      continue;
    }
    if (above.has(next.value) || !isPlain(next.value)) return false;
    above.add(next.value);
    open.push({ value: next.value, leave: true });
    for (const inner of Object.values(next.value)) {
      if (inner !== undefined || Array.isArray(next.value)) open.push({ value: inner });
    }
  }
  return true;
}

function isSimple(value: unknown): boolean {
  return value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value);
}

function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}
