import { quarantineDoc, storedVersion, type StoredQuarantine } from '../queue/stored.js';
import { ContentImport, isContent, type ContentParts } from './content-import.js';
import type { CarriedConflict, FileLine } from './format.js';

/** Takes conflicts in, each with its second version. One that is here already stays as it is. */
export class ConflictImport {
  readonly #parts: ContentParts;
  #open: { readonly entry: CarriedConflict; readonly content: ContentImport | undefined } | undefined;

  constructor(parts: ContentParts) {
    this.#parts = parts;
  }

  async take(line: FileLine): Promise<void> {
    if (line.kind === 'conflict') {
      await this.end();
      const { entry } = line;
      if ((await this.#parts.queue.docs.read(entry._id, quarantineDoc)) !== undefined) return;
      const { content } = entry;
      this.#open = { entry, content: content && new ContentImport(this.#parts, content.plan, new Map()) };
    } else if (isContent(line)) await this.#open?.content?.take(line);
  }

  /** Stores the one whose lines were read. */
  async end(): Promise<void> {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    const { content, ...rest } = open.entry;
    const entry: StoredQuarantine = { ...rest, v: storedVersion };
    await this.#parts.queue.docs.write([
      content === undefined || open.content === undefined
        ? entry
        : { ...entry, content: { ...content, plan: undefined, ...(await open.content.named()) } },
    ]);
  }
}
