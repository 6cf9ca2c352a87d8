const second = 1000;
const none = -1;

/**
 * What is due when, for very many devices: each waits for one moment. 20 bytes for each of them, what its owner notes of it
 * included; nothing is made while time goes on. What belongs to a device stands together, or the memory would be what takes
 * the time. A list for each second; within it the order of moments, and of coming where two are the same.
 */
export class Timeline {
  /** Of each device four numbers: the next one of the same second, the milliseconds within it, two of the owner. */
  readonly #records: Int32Array;
  readonly #first: Int32Array;
  readonly #last: Int32Array;
  readonly #sorted: Int32Array;
  readonly #places = new Int32Array(second + 1);
  /** The second that is being taken. */
  #taking = none;

  /** For so many devices and seconds. What is due later is forgotten. */
  constructor(devices: number, seconds: number) {
    this.#records = new Int32Array(devices * 4);
    this.#sorted = new Int32Array(devices);
    this.#first = new Int32Array(seconds).fill(none);
    this.#last = new Int32Array(seconds).fill(none);
  }

  /** The device is due at this moment: whole milliseconds, not in the second that is being taken. With two notes of 32 bits. */
  add(device: number, ms: number, note = 0, other = 0): void {
    const at = Math.floor(ms / second);
    if (at <= this.#taking) throw new RangeError(`The second ${String(at)} is over, or under way.`);
    if (at >= this.#first.length) return;
    const place = device * 4;
    this.#records[place] = none;
    this.#records[place + 1] = ms - at * second;
    this.#records[place + 2] = note;
    this.#records[place + 3] = other;
    const last = this.#last[at] ?? none;
    if (last === none) this.#first[at] = device;
    else this.#records[last * 4] = device;
    this.#last[at] = device;
  }

  /** Calls for each device that is due in this second, in order. */
  take(at: number, due: (device: number, ms: number, note: number, other: number) => void): void {
    this.#taking = at;
    const count = this.#sort(at);
    for (let place = 0; place < count; place++) {
      const device = this.#sorted[place] ?? 0;
      const from = device * 4;
      const [ms, note, other] = [this.#records[from + 1], this.#records[from + 2], this.#records[from + 3]];
      due(device, at * second + (ms ?? 0), note ?? 0, other ?? 0);
    }
  }

  /** By counting, which keeps the order of those that are due at the same moment. Answers with how many there are. */
  #sort(at: number): number {
    const places = this.#places.fill(0);
    let count = 0;
    const first = this.#first[at] ?? none;
    for (let device = first; device !== none; device = this.#records[device * 4] ?? none) {
      const ms = (this.#records[device * 4 + 1] ?? 0) + 1;
      places[ms] = (places[ms] ?? 0) + 1;
      count += 1;
    }
    for (let ms = 1; ms <= second; ms++) places[ms] = (places[ms] ?? 0) + (places[ms - 1] ?? 0);
    for (let device = first; device !== none; device = this.#records[device * 4] ?? none) {
      const ms = this.#records[device * 4 + 1] ?? 0;
      const place = places[ms] ?? 0;
      places[ms] = place + 1;
      this.#sorted[place] = device;
    }
    return count;
  }
}
