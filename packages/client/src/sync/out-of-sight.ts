import type { ClientOptions, ForgetReceipt } from '../model/client.js';
import { wrongInDocIds } from '../model/doc-ids.js';
import { AfieldError } from '../model/errors.js';
import type { LocalDatabase } from '../store/local-database.js';

const atOnce = 200;

/** Tells the app of documents that are here and that its user may no longer see. */
export class OutOfSight {
  readonly #local: LocalDatabase;
  readonly #ask: NonNullable<ClientOptions['outOfSight']>;
  readonly #forget: (ids: readonly string[]) => Promise<ForgetReceipt>;

  constructor(
    local: LocalDatabase,
    ask: ClientOptions['outOfSight'],
    forget: (ids: readonly string[]) => Promise<ForgetReceipt>,
  ) {
    this.#local = local;
    this.#ask = ask ?? (() => undefined);
    this.#forget = forget;
  }

  /** Answers with those that the app wants forgotten and that are kept for now: it is told of them again. */
  async tell(ids: readonly string[]): Promise<readonly string[]> {
    const here: string[] = [];
    for (let at = 0; at < ids.length; at += atOnce) {
      const rows = await this.#local.read(ids.slice(at, at + atOnce));
      here.push(...rows.flatMap(({ id, doc }) => (doc === undefined ? [] : [id])));
    }
    const wanted = here.length === 0 ? undefined : await this.#ask(here);
    if (wanted === undefined) return [];
    const wrong = wrongInDocIds(wanted);
    if (wrong !== undefined) throw new AfieldError('invalid_doc_ids', `What \`outOfSight\` answers with ${wrong}.`);
    return (await this.#forget(wanted)).kept.map(({ id }) => id);
  }
}
