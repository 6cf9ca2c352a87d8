import { AfieldError } from '../model/errors.js';
import type { IndexDefinition } from '../model/lookup.js';
import { KeptIndex, type KeptIndexParts } from './kept-index.js';

/** All indexes of a client. */
export class Indexes {
  readonly #byName: ReadonlyMap<string, KeptIndex>;

  constructor(definitions: readonly IndexDefinition[], parts: KeptIndexParts) {
    this.#byName = new Map(
      definitions.map((definition) => [definition.name, new KeptIndex(definition, parts)] as const),
    );
  }

  /** Throws `AfieldError` (`unknown_index`). */
  get(name: string): KeptIndex {
    const index = this.#byName.get(name);
    if (index === undefined) {
      const known = [...this.#byName.keys()].map((one) => `"${one}"`).join(', ');
      throw new AfieldError(
        'unknown_index',
        `The client has no index "${name}"${known === '' ? '' : ` (it has ${known})`}: name it in \`indexes\`.`,
      );
    }
    return index;
  }

  /** Whether all of these can be asked now, as far as this tab knows. */
  areReady(names: readonly string[]): boolean {
    return names.every((name) => this.#byName.get(name)?.isReady === true);
  }

  /** This tab keeps them up to date from now on. */
  lead(): void {
    for (const index of this.#byName.values()) index.follow();
  }

  /** Documents may have been written. */
  poke(): void {
    for (const index of this.#byName.values()) index.poke();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#byName.values()].map((index) => index.close()));
  }
}
