/** A value that JSON can hold. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A document as the handlers see it. */
export interface Doc {
  readonly _id: string;
  readonly _rev?: string;
  readonly _deleted?: boolean;
  readonly [field: string]: unknown;
}

/** True when two values are the same JSON: key order does not count, an undefined field is an absent one. */
export { sameJson } from './same-json.js';
