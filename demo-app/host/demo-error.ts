/** Something that whoever started the demo can set right; the message is one sentence for them, without credentials. */
export class DemoError extends Error {
  override readonly name = 'DemoError';
}
