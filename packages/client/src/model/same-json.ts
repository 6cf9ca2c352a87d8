import { isEqual } from 'es-toolkit/predicate';

export function sameJson(a: unknown, b: unknown): boolean {
  return isEqual(a, b);
}
