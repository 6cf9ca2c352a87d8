/**
 * The value of the header `Idempotency-Key` for an id: text in quotes, as the IETF's draft has it. Ids may hold any
 * character, a header may not: all but `A-Z a-z 0-9 - _ . ! ~ * ' ( )` is percent-encoded as UTF-8, so that
 * `decodeURIComponent` of what stands between the quotes is the id. Half of a surrogate pair, which UTF-8 cannot hold, is
 * written as `%uD800`. Two ids never have the same value.
 */
export function idempotencyKey(id: string): string {
  const encoded = id.replace(/[\s\S]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    const isHalf = code >= 0xd800 && code <= 0xdfff;
    return isHalf ? `%u${code.toString(16).toUpperCase()}` : encodeURIComponent(character);
  });
  return `"${encoded}"`;
}
