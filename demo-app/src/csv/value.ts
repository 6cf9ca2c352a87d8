import type { Json } from '@afield/client';

const types = [
  'string',
  'int',
  'float',
  'number',
  'bool',
  'boolean',
  'date',
  'rel-date',
  'timestamp',
  'rel-timestamp',
] as const;

export type ValueType = (typeof types)[number];

export function isValueType(text: string): text is ValueType {
  return (types as readonly string[]).includes(text);
}

/** What a cell means; undefined when the text can't be read as that type. `now`: milliseconds since 1970. */
export function readValue(text: string, type: ValueType, now: number): Json | undefined {
  switch (type) {
    case 'string':
      return text;
    case 'int':
      return readInt(text);
    case 'float':
    case 'number':
      return readNumber(text);
    case 'bool':
    case 'boolean':
      return readBool(text);
    case 'timestamp':
      return readInt(text) ?? readTime(text);
    case 'rel-timestamp':
      return plus(now, readInt(text));
    case 'date':
      return toIso(readTime(text));
    case 'rel-date':
      return toIso(plus(now, readInt(text)));
  }
}

function readInt(text: string): number | undefined {
  const number = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) ? number : undefined;
}

function readNumber(text: string): number | undefined {
  const number = text.trim() === '' ? Number.NaN : Number(text);
  return Number.isFinite(number) ? number : undefined;
}

function readBool(text: string): boolean | undefined {
  const word = text.toLowerCase();
  return word === 'true' ? true : word === 'false' ? false : undefined;
}

function readTime(text: string): number | undefined {
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : time;
}

function plus(now: number, offset: number | undefined): number | undefined {
  return offset === undefined ? undefined : now + offset;
}

function toIso(time: number | undefined): string | undefined {
  return time === undefined || Math.abs(time) > 8.64e15 ? undefined : new Date(time).toISOString();
}
