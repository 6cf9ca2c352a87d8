import { isValueType, type ValueType } from './value.js';

/** What the header of a column says. The rules are those of cht-conf, as far as its files here need them. */
export type Column =
  | { readonly kind: 'excluded'; readonly name: string }
  | { readonly kind: 'value'; readonly name: string; readonly path: readonly string[]; readonly type: ValueType }
  /** `parent:place WHERE reference_id=COL_VAL`: becomes the lineage of the row that is found. */
  | {
      readonly kind: 'link';
      readonly name: string;
      readonly path: readonly string[];
      readonly of: string;
      readonly where: string;
    }
  /** `patient_id:GET patient_id OF person WHERE reference_id=COL_VAL`: becomes one value of the row that is found. */
  | {
      readonly kind: 'lookup';
      readonly name: string;
      readonly path: readonly string[];
      readonly get: string;
      readonly of: string;
      readonly where: string;
    }
  | { readonly kind: 'refused'; readonly name: string; readonly why: string };

const link = /^(\S+) WHERE ([^=\s]+)=COL_VAL$/i;
const lookup = /^GET (\S+) OF (\S+) WHERE ([^=\s]+)=COL_VAL$/i;

/** Fields that do not come from a column: the id from the reference, the type and the form from the file name. */
const given: ReadonlySet<string> = new Set(['type', 'form']);

export function parseColumn(header: string): Column {
  const colon = header.indexOf(':');
  const name = (colon < 0 ? header : header.slice(0, colon)).trim();
  const rule = colon < 0 ? '' : header.slice(colon + 1).trim();
  if (rule === 'excluded') return { kind: 'excluded', name };
  const path = name.split('.');
  const why = refusal(path);
  if (why !== undefined) return { kind: 'refused', name, why };
  const found = lookup.exec(rule);
  if (found) {
    const [, get = '', of = '', where = ''] = found;
    return { kind: 'lookup', name, path, get, of, where };
  }
  const linked = link.exec(rule);
  if (linked) {
    const [, of = '', where = ''] = linked;
    return { kind: 'link', name, path, of, where };
  }
  const type = rule === '' ? 'string' : rule;
  if (!isValueType(type)) return { kind: 'refused', name, why: `the rule ":${rule}" is not known` };
  return { kind: 'value', name, path, type };
}

function refusal(path: readonly string[]): string | undefined {
  if (path.some((part) => part.trim() === '')) return 'it has no name';
  if (path.includes('__proto__')) return 'databases drop a field with this name';
  const first = path[0] ?? '';
  if (first.startsWith('_')) return 'names that start with _ belong to the database';
  if (path.length === 1 && given.has(first)) return 'it comes from the file name';
  return undefined;
}
