/** An object of JSON whose keys are plain data. */
export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Sets an own field, whatever its name: `__proto__` too is a plain key. */
export function setOwn(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}

export function ownOf(target: unknown, key: string): unknown {
  return isObject(target) && Object.hasOwn(target, key) ? target[key] : undefined;
}
