import * as z from 'zod';
import { DevServerError } from '../errors.js';
import type { ProxyRequest } from './request.js';

const headers = z.record(z.string(), z.union([z.string(), z.array(z.string())]));
const count = z.int().min(1);

/** Which requests a rule is about; every part may be left out. Occurrences are counted per rule, from 1. */
const condition = z.strictObject({
  /** One method or several; all of them by default. */
  method: z.union([z.string(), z.array(z.string())]).optional(),
  /** How the path (without query) ends; a `*` stands for any text. */
  path: z.string().optional(),
  /** The decoded name of the database. */
  database: z.string().optional(),
  /** Only this occurrence. */
  nth: count.optional(),
  /** This occurrence and the later ones. */
  fromNth: count.optional(),
  /** This many occurrences, from the first or from `fromNth`. */
  times: count.optional(),
});

const cors = z.boolean().optional();
const commit = z.boolean().optional();

/** What happens to the request. `commit`: the server does the work first (default false). */
const action = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('answer'),
    status: z.int().min(200).max(599),
    headers: headers.optional(),
    /** A JSON body; `text` is for any other. */
    body: z.unknown().optional(),
    text: z.string().optional(),
    commit,
    /** Whether pages of other origins may read the answer (default true). */
    cors,
  }),
  z.strictObject({ type: z.literal('captive-portal'), status: z.int().min(200).max(599).optional(), cors }),
  z.strictObject({ type: z.literal('delay'), ms: z.number().min(0) }),
  z.strictObject({ type: z.literal('reset'), commit }),
  z.strictObject({ type: z.literal('cut'), share: z.number().min(0).max(1) }),
  z.strictObject({ type: z.literal('slow'), bytesPerSecond: z.number().positive() }),
  z.strictObject({ type: z.literal('refused') }),
]);

const rule = z.strictObject({ when: condition.default({}), do: action });

/** A rule as it is given, see the README for what each kind does. */
export type FaultRule = z.input<typeof rule>;

/** What a rule does. */
export type FaultAction = z.output<typeof action>;

/** A rule in force. */
export interface ActiveRule {
  readonly id: string;
  readonly when: z.output<typeof condition>;
  readonly do: FaultAction;
  /** How often a request was what the rule is about. */
  readonly seen: number;
  /** How often the rule did something. */
  readonly fired: number;
}

/** One thing that is wrong with a rule. */
export interface RuleIssue {
  /** Where, such as `do.status`. */
  readonly path: string;
  readonly message: string;
}

/** A rule that can't be taken, with all that is wrong with it. */
export class InvalidRuleError extends DevServerError {
  readonly issues: readonly RuleIssue[];

  constructor(issues: readonly RuleIssue[]) {
    super('invalid_rule', issues.map(({ path, message }) => `${path || 'rule'}: ${message}`).join('; '));
    this.issues = issues;
  }
}

/** Checks a value against a schema. @throws InvalidRuleError */
export function checked<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new InvalidRuleError(result.error.issues.map(({ path, message }) => ({ path: path.join('.'), message })));
}

/** The rules in force, in the order in which they were added. */
export class RuleBook {
  readonly #rules = new Map<string, { -readonly [Key in keyof ActiveRule]: ActiveRule[Key] }>();
  #lastId = 0;

  /** Adds a rule and gives its id. @throws InvalidRuleError */
  add(given: unknown): string {
    const { when, do: what } = checked(rule, given);
    this.#lastId += 1;
    const id = `rule-${String(this.#lastId)}`;
    this.#rules.set(id, { id, when, do: what, seen: 0, fired: 0 });
    return id;
  }

  /** Whether there was such a rule. */
  remove(id: string): boolean {
    return this.#rules.delete(id);
  }

  clear(): void {
    this.#rules.clear();
  }

  list(): readonly ActiveRule[] {
    return [...this.#rules.values()].map((active) => ({ ...active }));
  }

  /** Counts the request in every rule that is about it, and gives what those rules do whose turn it is. */
  actionsFor(request: ProxyRequest): readonly FaultAction[] {
    const actions: FaultAction[] = [];
    for (const active of this.#rules.values()) {
      if (!isAbout(active.when, request)) continue;
      active.seen += 1;
      if (!isItsTurn(active.when, active.seen)) continue;
      active.fired += 1;
      actions.push(active.do);
    }
    return actions;
  }
}

function isAbout({ method, path, database }: ActiveRule['when'], request: ProxyRequest): boolean {
  const methods = method === undefined ? undefined : [method].flat().map((name) => name.toUpperCase());
  if (methods !== undefined && !methods.includes('*') && !methods.includes(request.method)) return false;
  if (database !== undefined && database !== request.database) return false;
  return path === undefined || endsLike(request.path, path);
}

/** Whether a text ends like a pattern in which `*` stands for any text. */
export function endsLike(text: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*').reverse();
  if (!text.endsWith(first)) return false;
  let before = text.length - first.length;
  for (const part of rest) {
    const found = text.slice(0, before).lastIndexOf(part);
    if (found < 0) return false;
    before = found;
  }
  return true;
}

function isItsTurn({ nth, fromNth = 1, times }: ActiveRule['when'], occurrence: number): boolean {
  if (nth !== undefined && occurrence !== nth) return false;
  return occurrence >= fromNth && (times === undefined || occurrence < fromNth + times);
}
