import { seededRandom } from '../real-browser/seeded-random.js';

export interface VillageDoc {
  readonly _id: string;
  readonly [field: string]: unknown;
}

/** Documents on the server, and what the move is to do with them. All of it is made up. */
export interface Village {
  readonly docs: readonly VillageDoc[];
  /** How many operations the move has for each document that it changes. */
  readonly operations: ReadonlyMap<string, number>;
  /** Operations by their actions. */
  readonly byAction: Readonly<Record<'set-parent' | 'set-contact', number>>;
}

export interface VillageSize {
  /** Contacts below the health centre that moves. */
  readonly contacts: number;
  /** Reports that they have sent. */
  readonly reports: number;
  readonly seed: number;
}

interface Lineage {
  readonly _id: string;
  readonly parent?: Lineage;
}

/** Other health centres: nothing of them may change. */
const others = [
  { name: 'centre-2', district: 'district-1' },
  { name: 'centre-3', district: 'district-2' },
] as const;
/** So many each has at most, and no more than the one that moves. */
const most = { clinics: 25, reports: 150 };

/**
 * Two districts and three health centres. Below `centre-1` a fifth of the contacts are clinics, the others people in them;
 * clinics, the centre and its district have one of these people as their contact. The sender of a report is one of them, and
 * some reports are about people of another centre, there and here.
 */
export function village({ contacts, reports, seed }: VillageSize): Village {
  const random = seededRandom(seed);
  const pick = <Value>(list: readonly [Value, ...Value[]]): Value =>
    list[Math.floor(random() * list.length)] ?? list[0];
  const made = new Made();
  const [district1, district2] = [{ _id: 'district-1' }, { _id: 'district-2' }];
  const centre = { _id: 'centre-1', parent: district1 };
  const clinics = Math.max(1, Math.floor(contacts / 5));
  const moving = made.below(centre, { clinics, people: contacts - clinics, pick });
  made.place('centre-1', 'Health centre 1', district1, pick(moving));
  made.place('district-1', 'District 1', undefined, pick(moving));
  made.place('district-2', 'District 2', undefined);
  const elsewhere = others.map(({ name, district }) => {
    const parent = district === 'district-1' ? district1 : district2;
    const count = Math.min(most.clinics, clinics);
    const people = made.below({ _id: name, parent }, { clinics: count, people: count * 3, pick });
    made.place(name, name.replace('centre-', 'Health centre '), parent, pick(people));
    return people;
  });
  const [neighbours = moving] = elsewhere;
  for (let at = 0; at < reports; at += 1) made.report(pick(moving), random() < 0.1 ? pick(neighbours) : pick(moving));
  for (const people of elsewhere) {
    for (let at = 0; at < Math.min(most.reports, reports); at += 1) {
      made.report(pick(people), random() < 0.1 ? pick(moving) : pick(people));
    }
  }
  return { docs: made.docs, ...expected(made.docs) };
}

/** The operations that the move must have: told from the documents as they are before it. */
function expected(docs: readonly VillageDoc[]): Pick<Village, 'operations' | 'byAction'> {
  const operations = new Map<string, number>();
  const byAction = { 'set-parent': 0, 'set-contact': 0 };
  const add = (id: string, action: keyof typeof byAction): void => {
    operations.set(id, (operations.get(id) ?? 0) + 1);
    byAction[action] += 1;
  };
  for (const { _id, parent, contact } of docs) {
    if (_id === 'centre-1' || isBelow(parent)) add(_id, 'set-parent');
    if (isBelow(contact)) add(_id, 'set-contact');
  }
  return { operations, byAction };
}

function isBelow(lineage: unknown): boolean {
  for (let level = lineage as Lineage | undefined; level !== undefined; level = level.parent) {
    if (level._id === 'centre-1') return true;
  }
  return false;
}

class Made {
  readonly docs: VillageDoc[] = [];
  #clinics = 0;
  #people = 0;
  #reports = 0;

  place(_id: string, name: string, parent: Lineage | undefined, contact?: Lineage): void {
    const [type = ''] = _id.split('-');
    this.docs.push({
      _id,
      type,
      name,
      ...(parent === undefined ? {} : { parent }),
      ...(contact === undefined ? {} : { contact }),
    });
  }

  /** Clinics below this place, each with one of its people as contact. Answers with the people. */
  below(
    above: Lineage,
    {
      clinics,
      people,
      pick,
    }: { clinics: number; people: number; pick: (list: readonly [Lineage, ...Lineage[]]) => Lineage },
  ): readonly [Lineage, ...Lineage[]] {
    const all: Lineage[] = [];
    for (let at = 0; at < clinics; at += 1) {
      const number = (this.#clinics += 1);
      const clinic = { _id: `clinic-${padded(number)}`, parent: above };
      const count = Math.floor((people * (at + 1)) / clinics) - Math.floor((people * at) / clinics);
      const own = Array.from({ length: count }, () => this.#person(clinic));
      const [first, ...more] = own;
      all.push(...own);
      const contact = first === undefined ? undefined : pick([first, ...more]);
      this.place(clinic._id, `Clinic ${String(number)}`, above, contact);
    }
    const [first, ...more] = all;
    if (first === undefined) throw new RangeError('There is nobody in these clinics.');
    return [first, ...more];
  }

  report(by: Lineage, about: Lineage): void {
    const number = (this.#reports += 1);
    const code = `p${about._id.slice('person-'.length)}`;
    // Both ways to say whom it is about.
    const subject = number % 2 === 0 ? { patient_uuid: about._id } : { patient_id: code };
    this.docs.push({
      _id: `report-${padded(number)}`,
      type: 'data_record',
      form: 'visit',
      contact: by,
      fields: { ...subject, weight: number % 40 },
    });
  }

  #person(clinic: Lineage): Lineage {
    const number = (this.#people += 1);
    const _id = `person-${padded(number)}`;
    const name = `Person ${String(number)}`;
    this.docs.push({ _id, type: 'person', name, patient_id: `p${padded(number)}`, parent: clinic });
    return { _id, parent: clinic };
  }
}

const padded = (number: number): string => String(number).padStart(5, '0');
