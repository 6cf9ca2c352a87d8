import type { Day } from './day.js';

const openMinutes = 10 * 60;
const everyTwoHours = [1, 3, 5, 7, 9].map((hour) => hour * 60);
const always = [[0, openMinutes]] as const;

const working = {
  openMinutes,
  connected: always,
  away: [],
  bulkOperationsAt: everyTwoHours,
  operations: 10,
  failing: 1,
  changedByOthers: 20,
} satisfies Partial<Day>;

/** The days that the page on clusters is about. The app is open for ten hours in each. */
export const days = {
  quiet: { ...working, name: 'quiet', bulkOperationsAt: [], failing: 0, changedByOthers: 0 },
  working: { ...working, name: 'working' },
  seldom: { ...working, name: 'working, pull every 10 min', pullEveryS: 600 },
  field: {
    ...working,
    name: 'two connections',
    connected: [
      [0, 30],
      [openMinutes - 30, openMinutes],
    ],
  },
  outage: { ...working, name: 'outage of 2 hours', away: [[2 * 60, 4 * 60]] },
} satisfies Record<string, Day>;
