/**
 * JSON text in which the order of an object's fields does not show. Needs no stack: however deeply something is nested, it
 * can be compared when it can be stored. The value is JSON, or has undefined fields beside it.
 */
export function canonicalJson(root: unknown): string {
  let text = '';
  const open: (string | { readonly value: unknown })[] = [{ value: root }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next === 'string') text += next;
    else if (typeof next.value !== 'object' || next.value === null) text += scalar(next.value);
    else text += opened(next.value, open);
  }
  return text;
}

/** Begins a list or an object: what follows is pushed, the last first. */
function opened(value: object, open: (string | { readonly value: unknown })[]): string {
  const isList = Array.isArray(value);
  const fields = value as Readonly<Record<string, unknown>>;
  const names = isList
    ? Array.from(value, (_member, index) => String(index))
    : Object.keys(value).flatMap((name) => (fields[name] === undefined ? [] : [name]));
  if (!isList) names.sort();
  open.push(isList ? ']' : '}');
  for (let place = names.length - 1; place >= 0; place--) {
    const name = names[place] ?? '';
    open.push({ value: fields[name] });
    const comma = place === 0 ? '' : ',';
    open.push(isList ? comma : `${comma}${JSON.stringify(name)}:`);
  }
  return isList ? '[' : '{';
}

function scalar(value: unknown): string {
  return value === undefined ? 'null' : JSON.stringify(value);
}
