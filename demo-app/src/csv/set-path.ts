/** An object that is filled by the import. Only own fields count, whatever they are called. */
export interface Fields {
  [name: string]: unknown;
}

/**
 * Sets a nested field and makes the objects on the way. Answers false, and changes nothing, when something else stands
 * at the field or on the way to it. Works on own fields only, so that a column `constructor.prototype.x` is plain data.
 */
export function setPath(target: Fields, path: readonly string[], value: unknown): boolean {
  const last = path[path.length - 1];
  if (last === undefined || path.includes('__proto__')) return false;
  if (!isFree(target, path)) return false;
  let here = target;
  for (const name of path.slice(0, -1)) {
    const next = own(here, name);
    if (isFields(next)) here = next;
    else here = define(here, name, {});
  }
  define(here, last, value);
  return true;
}

/** The nested field, if every part of the path is an own one. */
export function getPath(source: unknown, path: readonly string[]): unknown {
  let here: unknown = source;
  for (const name of path) {
    if (!isFields(here)) return undefined;
    here = own(here, name);
  }
  return here;
}

function isFree(target: Fields, path: readonly string[]): boolean {
  let here: unknown = target;
  for (const name of path) {
    if (!isFields(here)) return false;
    if (!Object.prototype.hasOwnProperty.call(here, name)) return true;
    here = own(here, name);
  }
  return false;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function own(object: Fields, name: string): unknown {
  return Object.prototype.hasOwnProperty.call(object, name) ? object[name] : undefined;
}

function define<Value>(object: Fields, name: string, value: Value): Value {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
  return value;
}
