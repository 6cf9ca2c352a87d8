import { ReplaySubject, type Observable } from 'rxjs';
import { z } from 'zod/mini';
import type { Channel } from '../model/environment.js';
import type { DocumentEvent } from '../model/event.js';
import type { Doc } from '../model/json.js';
import { sameJson } from '../model/same-json.js';
import type { Queue } from '../queue/queue.js';
import { isOutcome, sequenceOf, storedVersion, type Header, type RowState } from '../queue/stored.js';
import { eventDocument, readEventDocument } from './event-document.js';
import { eventOf } from './event.js';
import type { Events } from './events.js';
import { Held } from './held.js';
import { looksAt } from './looks.js';
import {
  afterLook,
  entriesOf,
  isAtEnd,
  nothingTaken,
  progressData,
  readableEnd,
  shortened,
  type Progress,
} from './progress.js';
import { within } from './ranges.js';
import { Round } from './round.js';

/** Events that who subscribes late gets first. */
const mostReplayed = 1000;
/** Batches between two notes of how far the page was told: so much may be told twice after the process has died. */
const batchesPerNote = 10;

const noteId = 'he:page';
const noteDoc = z.object({
  _id: z.string(),
  _rev: z.optional(z.string()),
  v: z.literal(storedVersion),
  progress: progressData,
});
type Note = z.infer<typeof noteDoc>;

const message = z.array(z.custom<Doc>((value) => typeof (value as { _id?: unknown } | null)?._id === 'string'));

/** An operation of a batch, as far as its event needs it. */
interface ToldOperation {
  readonly id: unknown;
  readonly key: string;
  readonly origin?: string;
}

export interface PageEventsParts {
  readonly queue: Queue;
  readonly events: Events;
  readonly closed: AbortSignal;
  /** Gives the page a turn in the middle of long work. */
  readonly breathe: () => Promise<void>;
}

/**
 * The events of this page and of the other tabs. The tab that leads tells them as soon as their outcomes are durable, and
 * notes now and then how far it has come; what came after the note is told again by the next leader (at least once).
 */
export class PageEvents {
  readonly events$: Observable<DocumentEvent>;
  readonly #parts: PageEventsParts;
  readonly #subject = new ReplaySubject<DocumentEvent>(mostReplayed);
  #channel: Channel | undefined;
  #storeId: string | undefined;
  #note: Note = { _id: noteId, v: storedVersion, progress: nothingTaken };
  #isOutdated = false;
  #batches = 0;
  /** What happens while older events are still being told: told after them. */
  #later: DocumentEvent[] | undefined;

  constructor(parts: PageEventsParts) {
    this.#parts = parts;
    this.events$ = this.#subject.asObservable();
  }

  /** Hears what other tabs tell. */
  listen(open: (news: (said?: unknown) => void) => Channel): void {
    this.#channel ??= open((said) => {
      const docs = message.safeParse(said);
      if (!docs.success) return;
      for (const doc of docs.data) {
        const reading = readEventDocument(doc);
        if (reading.kind === 'event') this.#subject.next(reading.event);
      }
    });
  }

  /** This tab leads: what the last leader may not have told is told now. */
  async lead(storeId: string): Promise<void> {
    const { queue, events, closed, breathe } = this.#parts;
    this.#storeId = storeId;
    this.#later ??= [];
    await this.#readNote();
    let { progress } = this.#note;
    const round = new Round({ queue, events, storeId, held: new Held(), looksAgain: false });
    for (let page = await round.next(progress); page !== undefined; page = await round.next(progress)) {
      if (closed.aborted) return;
      this.#tell(page.events);
      progress = afterLook(
        progress,
        looksAt(page.places, () => false),
        queue.headers.all(),
      );
      await breathe();
    }
    this.#tellLater(progress);
    const note = { ...this.#note, progress: toldUpTo(progress, queue.headers.all()) };
    // Most starts have nothing new to tell: then nothing is written.
    if (sameJson(note.progress, this.#note.progress)) return;
    this.noted([note], (await queue.docs.write([note])).revs);
  }

  /** These rows are durable: those that have their outcome only now are told. */
  happened(
    header: Header,
    {
      batch,
      rows: before,
    }: { batch: { from: number; operations: readonly ToldOperation[] }; rows: readonly RowState[] },
    rows: readonly RowState[],
  ): void {
    const storeId = this.#storeId;
    if (storeId === undefined) return;
    const fresh = rows.flatMap((row, place) => {
      const operation = batch.operations[place];
      if (operation === undefined || isOutcome(before[place])) return [];
      const { id, key, origin } = operation;
      const stored = { i: id, k: key, ...(origin === undefined ? {} : { o: origin }), c: null };
      return eventOf(storeId, header, batch.from + place, stored, row) ?? [];
    });
    if (this.#later === undefined) this.#tell(fresh);
    else this.#later.push(...fresh);
  }

  /** All older events are told: now those that happened meanwhile, as far as they were not found among the older ones. */
  #tellLater(progress: Progress): void {
    const entries = entriesOf(progress);
    const events = this.#later ?? [];
    this.#later = undefined;
    this.#tell(
      events.filter(({ sequence, index }) => {
        const entry = entries.get(sequence);
        if (entry === undefined) return sequence > progress.upTo;
        return index >= entry.n || within(entry.o, [index]).size > 0;
      }),
    );
  }

  close(): void {
    this.#channel?.close();
    this.#subject.complete();
  }

  #tell(events: readonly DocumentEvent[]): void {
    if (events.length === 0) return;
    for (const event of events) this.#subject.next(event);
    this.#channel?.announce(events.map(eventDocument));
  }

  /** What is told so far, to be written beside outcomes: now and then, and before the last batch of a bulk operation. */
  async note(header: Header, rows: number): Promise<readonly Note[]> {
    const { queue } = this.#parts;
    if (this.#storeId === undefined) return [];
    const isLast = header.cursor + rows >= header.total;
    if (++this.#batches < batchesPerNote && !isLast) return [];
    this.#batches = 0;
    if (this.#isOutdated) await this.#readNote();
    return [{ ...this.#note, progress: toldUpTo(this.#note.progress, queue.headers.all()) }];
  }

  /** The note was written, or another tab was faster with its own. */
  noted(written: readonly Note[], revs: ReadonlyMap<string, string>): void {
    for (const doc of written) {
      const rev = revs.get(doc._id);
      if (rev === undefined) this.#isOutdated = true;
      else this.#note = { ...doc, _rev: rev };
    }
  }

  async #readNote(): Promise<void> {
    this.#note = (await this.#parts.queue.docs.read(noteId, noteDoc)) ?? this.#note;
    this.#isOutdated = false;
  }
}

/** All that has its outcome now. */
function toldUpTo({ upTo }: Progress, headers: readonly Header[]): Progress {
  const open = headers
    .filter(({ _id, attempts }) => sequenceOf(_id) > upTo && attempts > 0)
    .map((header) => ({
      s: sequenceOf(header._id),
      n: isAtEnd(header) ? readableEnd(header) : header.cursor,
      d: 0,
      w: [],
      o: [],
    }));
  return shortened({ upTo, open }, headers);
}
