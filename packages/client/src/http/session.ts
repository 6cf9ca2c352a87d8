import { z } from 'zod/mini';
import type { AuthOptions, Credentials } from '../model/client.js';
import type { Clock } from '../model/environment.js';
import { sameJson } from '../model/same-json.js';
import { AfieldError, SignInRequiredError, type SignInCause } from '../model/errors.js';

const minute = 60_000;

/** What cannot be sent as a header is found when it comes, not when an error about it shows it. */
const headerValue = z.string().check(z.regex(/^[\t\x20-\x7e\x80-\xff]*$/));

const headerName = z.string().check(z.regex(/^[\w!#$%&'*+.^`|~-]+$/));

const credentialsShape = z.discriminatedUnion('type', [
  z.object({ type: z.literal('basic'), username: z.string(), password: z.string() }),
  z.object({ type: z.literal('bearer'), token: headerValue }),
  z.object({ type: z.literal('cookie') }),
  z.object({ type: z.literal('header'), name: headerName, value: headerValue }),
  z.object({ type: z.literal('headers'), headers: z.record(headerName, headerValue) }),
]);

/**
 * What is new with a sign-in. `other`: the app said that someone has signed in, a password is another one, or the server
 * names other roles: it may take what it has refused before. `renewed`: the app has brought other credentials after a
 * refusal, as it does with tokens every few minutes: that the server may do so, nothing shows. The same is said of the next
 * run of the app: what happened while it was closed, nobody has seen.
 */
export type SignInNews = 'other' | 'renewed';

/** What a request carries to show who we are. */
export interface SignIn {
  readonly headers: Readonly<Record<string, string>>;
  readonly cookies: boolean;
  /** Which credentials these are, to tell a late refusal of old ones. */
  readonly version: number;
}

/**
 * Who we are at the server. Credentials live in memory only.
 *
 *   unknown ──first request──▶ asking ──▶ given ──_session──▶ signed in ──401──▶ refused ──▶ asking (at most once a minute)
 *                                 ▲         └─ someone else ───────────────────────▶ │
 *                                 └────────── renew(): the app says so ◀─────────────┘
 */
export class Session {
  readonly #auth: AuthOptions | undefined;
  readonly #clock: Clock;
  readonly #changed: () => void;
  readonly #warn: (line: string) => void;
  readonly #remember: (user: string) => Promise<string>;
  readonly #signedInAnew: (news: SignInNews) => void;
  #credentials: Credentials | undefined;
  #version = 0;
  #asking: Promise<void> | undefined;
  /** Whose work this is: as the app said, as the store remembers, else as the server said it first (S7). */
  #user: string | undefined;
  #askingSince = 0;
  #askedAt: number | undefined;
  #askFailed = false;
  #refusedAt = 0;
  #refused: SignInCause | undefined;
  /** The credentials of this version are known to be this person's. */
  #identified: number | undefined;
  #identifying: Promise<void> | undefined;
  /** The roles that the server has named last, in a fixed order. */
  #roles: string | undefined;

  /**
   * `changed` is called when work that waits for credentials may go on, or has to wait. `remember` is told the first name that
   * the server says, and answers with whose the store is.
   */
  constructor(
    auth: AuthOptions | undefined,
    clock: Clock,
    changed: () => void,
    warn: (line: string) => void,
    remember: (user: string) => Promise<string> = (user) => Promise.resolve(user),
    signedInAnew: (news: SignInNews) => void = () => undefined,
  ) {
    this.#signedInAnew = signedInAnew;
    this.#warn = warn;
    this.#remember = remember;
    this.#auth = auth;
    this.#clock = clock;
    this.#changed = changed;
  }

  /** Whose work this is, when it is known: nothing goes to the server as someone else (S7). */
  expect(user: string | undefined): void {
    this.#user = user ?? this.#user;
  }

  /** Why nothing is tried; undefined while nothing was refused. */
  get refusedAs(): SignInCause | undefined {
    return this.#refused;
  }

  /** True while the server refuses what we have: nothing is tried (R12). */
  get isRefused(): boolean {
    return this.#refused !== undefined;
  }

  /** What the app gave when it was asked did not help: none, or refused again. It may have better ones later. */
  get askFailed(): boolean {
    return this.#askFailed && this.#refused !== undefined;
  }

  /** Milliseconds on the monotonic clock since the app was asked and has not answered; undefined when nothing is asked. */
  get askingForMs(): number | undefined {
    return this.#asking === undefined ? undefined : this.#clock.monotonic() - this.#askingSince;
  }

  /** Whether a request can be sent now. If the app was never asked for credentials, it is asked, and `changed` follows. */
  isReady(): boolean {
    if (this.#refused !== undefined) return false;
    if (this.#auth !== undefined && this.#credentials === undefined) {
      void this.#ask('first');
      return false;
    }
    return !this.#refuseOther();
  }

  /** What to send; asks the app before the first request. Throws `SignInRequiredError` while refused. */
  async signIn(): Promise<SignIn> {
    if (this.#refused !== undefined) throw new SignInRequiredError(this.#refused);
    if (this.#auth !== undefined && this.#credentials === undefined) await this.#ask('first');
    if (this.#refused === undefined) this.#refuseOther();
    if (this.#refused !== undefined) throw new SignInRequiredError(this.#refused);
    return { ...carried(this.#credentials), version: this.#version };
  }

  /** The server refused; the app is asked once, in the background, never again within a minute. */
  refuse(used: SignIn, code: SignInCause): void {
    if (used.version !== this.#version) return;
    if (this.#refused === undefined) {
      this.#refusedAt = this.#clock.monotonic();
      this.#refused = code;
      this.#changed();
    }
    this.#askAgain();
  }

  /**
   * Whether the server must be asked whose these credentials are before anything else is sent with them. Basic ones say it
   * themselves, once it is known whose work this is. An app without `auth` and without `user` works at a server that needs
   * no one.
   */
  isUnknown(used: SignIn): boolean {
    if (used.version !== this.#version) return true;
    if (this.#auth === undefined && this.#user === undefined) return false;
    const saysItself = this.#ownName !== undefined && this.#user !== undefined;
    return !saysItself && this.#identified !== this.#version;
  }

  /** One question to the server at a time, however many wait for its answer. */
  oneAtATime(identify: () => Promise<void>): Promise<void> {
    this.#identifying ??= identify().finally(() => {
      this.#identifying = undefined;
    });
    return this.#identifying;
  }

  /**
   * The server has said whose session it is with these credentials: someone else's are refused. Null: it knows nobody, which
   * says nothing of who we are; whether it lets us in, each request shows. Rejects when the store cannot be written.
   */
  async identify(used: SignIn, name: string | null, roles?: readonly string[]): Promise<void> {
    if (used.version !== this.#version) return;
    const who = name === null ? undefined : (this.#ownName ?? name);
    if (who !== undefined) this.#user ??= await this.#remember(who);
    if (used.version !== this.#version) return;
    this.#identified = this.#version;
    if (who === undefined) return;
    if (who === this.#user) this.#noteRoles(roles);
    else this.refuse(used, 'other-user');
  }

  /** The server says, after it has refused something, whose session this is. True when it is ours; else it is refused. */
  confirm(name: string | null): boolean {
    const expected = this.#ownName ?? this.#user ?? name;
    if (name !== null && name === expected) {
      this.#user ??= name;
      return true;
    }
    this.refusePresent(name === null ? 'forbidden' : 'other-user');
    return false;
  }

  /** A row says that we are not signed in: the credentials in use are refused. */
  refusePresent(code: SignInCause): void {
    this.refuse({ ...carried(this.#credentials), version: this.#version }, code);
  }

  /** The app has fresh credentials, or wants the old ones tried again. */
  renew(): void {
    this.#askedAt = undefined;
    this.#asking = undefined; // an older question is not waited for any more
    this.#credentials = undefined;
    this.#version++;
    this.#signedInAnew('other');
    if (this.#refused === undefined) return;
    this.#refused = undefined;
    this.#changed();
  }

  /** An event that may have changed something: the app is asked again if the last time is a minute ago. */
  reconsider(): void {
    // Cookies belong to the browser: someone else may have signed in with it since we have looked.
    if (this.#credentials === undefined || this.#credentials.type === 'cookie') this.#identified = undefined;
    if (this.#refused !== undefined) this.#askAgain();
  }

  /** The very credentials that were refused a moment ago: trying them again only locks the account. */
  #isJustRefused(credentials: Credentials): boolean {
    if (credentials.type === 'cookie' || this.#clock.monotonic() - this.#refusedAt >= minute) return false;
    return sameJson(credentials, this.#credentials);
  }

  /** The same person may have other rights than before: only where the server has told both. */
  #noteRoles(roles: readonly string[] | undefined): void {
    if (roles === undefined) return;
    const before = this.#roles;
    this.#roles = JSON.stringify([...roles].sort());
    if (before !== undefined && before !== this.#roles) this.#signedInAnew('other');
  }

  /** The name that the credentials say themselves. */
  get #ownName(): string | undefined {
    return this.#credentials?.type === 'basic' ? this.#credentials.username : undefined;
  }

  /** Credentials that say themselves that they are someone else's are refused before they are used. */
  #refuseOther(): boolean {
    if (this.#ownName === undefined || this.#user === undefined || this.#ownName === this.#user) return false;
    this.refusePresent('other-user');
    return true;
  }

  #askAgain(): void {
    if (this.#auth === undefined || this.#asking !== undefined) return;
    if (this.#askedAt !== undefined && this.#clock.monotonic() - this.#askedAt < minute) {
      this.#askFailed = true;
      return;
    }
    void this.#ask('refused');
  }

  #ask(why: 'first' | 'refused'): Promise<void> {
    if (this.#asking !== undefined) return this.#asking;
    this.#askingSince = this.#clock.monotonic();
    const asking = this.#askApp(why).finally(() => {
      if (this.#asking === asking) this.#asking = undefined;
    });
    this.#asking = asking;
    return asking;
  }

  async #askApp(why: 'first' | 'refused'): Promise<void> {
    if (this.#auth === undefined) return;
    const version = this.#version;
    if (why === 'refused') this.#askedAt = this.#clock.monotonic();
    try {
      const credentials = await this.#auth.credentials(why);
      if (!credentialsShape.safeParse(credentials).success) throw noCredentials();
      if (version !== this.#version) return; // `renew` came meanwhile: the app is asked anew
      if (why === 'refused' && this.#isJustRefused(credentials)) {
        this.#askFailed = true;
        return;
      }
      // A person types a password; it does not renew itself.
      const isTyped = credentials.type === 'basic' && !sameJson(credentials, this.#credentials);
      this.#credentials = credentials;
      this.#version++;
      if (why === 'refused') this.#signedInAnew(isTyped ? 'other' : 'renewed');
      this.#refused = undefined;
      this.#askFailed = false;
    } catch (error) {
      this.#askFailed = true;
      if (error instanceof AfieldError) this.#warn(error.message);
      // The app has none: the named state says what is awaited, and `renew()` ends it.
      if (version === this.#version) this.#refused ??= 'unauthorized';
    }
    this.#changed();
  }
}

function carried(credentials: Credentials | undefined): Pick<SignIn, 'headers' | 'cookies'> {
  switch (credentials?.type) {
    case 'basic':
      return {
        headers: { authorization: `Basic ${base64(`${credentials.username}:${credentials.password}`)}` },
        cookies: false,
      };
    case 'bearer':
      return { headers: { authorization: `Bearer ${credentials.token}` }, cookies: false };
    case 'header':
      return { headers: { [credentials.name]: credentials.value }, cookies: false };
    case 'headers':
      return { headers: credentials.headers, cookies: false };
    case 'cookie':
    case undefined:
      return { headers: {}, cookies: true };
  }
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

function noCredentials(): AfieldError {
  return new AfieldError('invalid_option', 'auth.credentials() gave no credentials of a type that Afield knows.');
}
