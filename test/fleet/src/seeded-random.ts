/** Numbers from 0 to 1, always the same ones for the same seed (mulberry32). All that it knows is one number of 32 bits. */
export class SeededRandom {
  /** The seed, then what the next number is made from. */
  state: number;

  constructor(seed: number) {
    this.state = seed | 0;
  }

  readonly next = (): number => {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function seededRandom(seed: number): () => number {
  return new SeededRandom(seed).next;
}

/** The seed of one device of a fleet. */
export function seedOf(fleet: number, device: number): number {
  return fleet * 1_000_003 + device;
}
