/** What every publisher must keep to. */
export const publisherLawNames = [
  'arrives-whole',
  'stored-once',
  'lost-answer',
  'other-content',
  'no-false-success',
  'failure-in-the-middle',
  'in-order',
  'any-id',
  'hundred-at-once',
  'two-at-once',
  'no-secrets',
] as const;

/**
 * - `arrives-whole`: an event arrives with all its fields.
 * - `stored-once`: an event that is published again is accepted again, and stored once (O6).
 * - `lost-answer`: work that was done before its answer got lost is accepted the next time, and stored once.
 * - `other-content`: an event whose id is there with other content is in `conflicts`, never accepted, and changes nothing.
 * - `no-false-success`: what is accepted is there; an outage, a page of a hotspot, a refused event are no success. What
 *   may pass is thrown as an error of Afield's, or stands in `error`.
 * - `failure-in-the-middle`: when the network fails in the middle of a call, all is stored once in the end.
 * - `in-order`: events arrive in the order of the call.
 * - `any-id`: ids may hold `/ % # + ? : "` and any Unicode, and are told apart.
 * - `hundred-at-once`: a call with 100 events.
 * - `two-at-once`: two calls at the same time with the same events store them once.
 * - `no-secrets`: no error holds a secret of the app.
 */
export type PublisherLaw = (typeof publisherLawNames)[number];

/** A publisher breaks a law; the message holds the law and what happened. */
export class BrokenPublisherLawError extends Error {
  readonly code = 'broken_law';
  constructor(
    readonly publisher: string,
    readonly law: PublisherLaw,
    readonly what: string,
  ) {
    super(`The publisher "${publisher}" breaks the law "${law}": ${what}.`);
    this.name = 'BrokenPublisherLawError';
  }
}
