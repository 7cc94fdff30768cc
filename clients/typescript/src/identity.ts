/**
 * What a client shows a server: a token, and metadata. Where an option is not given, the environment says it:
 * JOBLINE_TOKEN, and JOBLINE_TLS (1: by the authorities of Node), JOBLINE_TLS_CA, JOBLINE_CLIENT_CERTIFICATE and
 * JOBLINE_CLIENT_KEY, which are files of PEM and turn TLS on, too, unless JOBLINE_TLS is 0.
 */
import type { Metadata } from "@grpc/grpc-js";
import { onAbort } from "./aborts.js";
import { type Address, isNear, metadataOf, targetOf } from "./channel.js";
import { InvalidArgument, type JoblineError, NoToken } from "./errors.js";
import { wrongly } from "./given.js";
import { TIMER_MAX } from "./timers.js";
import { refuseNoTls, type Tls, Trust } from "./tls.js";

/** A token, or what returns the one of now: it is called in each call, so it should keep one. */
export type Token = string | (() => string | Promise<string>);

/** An address that leaves nothing to the environment, whose parts were checked. */
export interface ResolvedAddress {
  readonly target: string;
  readonly tls: Tls | false;
  readonly metadata: Readonly<Record<string, string>>;
  readonly token?: Token;
  readonly insecureToken: boolean;
}

const AUTHORIZATION = "authorization";
const YES = ["1", "true", "yes", "on"];
const NO = ["0", "false", "no", "off"];
/** The reason of a refusal: the token's time is over, and the same call with a new one works. */
const TOKEN_EXPIRED = "TOKEN_EXPIRED";

function refuse(field: string, why: string): never {
  throw new InvalidArgument(`${field}: ${why}`, { fields: { [field]: why } });
}

function isToken(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]+$/.test(value);
}

/**
 * Returns an address with what the environment says of it. Throws InvalidArgument for what does not go together, and
 * for a token that would go over a network in plaintext.
 */
export function resolved(address: Address): ResolvedAddress {
  const target = targetOf(address);
  const tls = tlsOf(address.tls);
  const { metadata = {}, insecureToken = false } = address;
  if (typeof insecureToken !== "boolean") throw wrongly("insecureToken", "true or false", insecureToken);
  metadataOf(metadata);
  new Trust(tls || undefined);
  const hasOwn = Object.keys(metadata).some((name) => name.toLowerCase() === AUTHORIZATION);
  const given = address.token;
  if (given !== undefined && hasOwn) refuse("token", "metadata has an authorization: give one of both");
  const token = given ?? (hasOwn ? undefined : tokenOfEnvironment());
  const found = { target, tls, metadata: { ...metadata }, insecureToken };
  if (token === undefined) return found;
  if (typeof token !== "function" && !isToken(token)) {
    refuse("token", "is one word of printable ASCII, or a function that returns it");
  }
  if (!tls && !insecureToken && !isNear(target)) {
    const why = "is another host, and without TLS everybody on the way can read a token";
    refuse("token", `${target} ${why}: give tls: true (JOBLINE_TLS=1), or insecureToken: true`);
  }
  return { ...found, token };
}

function tokenOfEnvironment(): string | undefined {
  const found = process.env.JOBLINE_TOKEN;
  // A Secret that was made of a file ends with a line.
  return found?.trim() || found || undefined;
}

function tlsOf(given: Address["tls"]): Tls | false {
  if (given === undefined) return tlsOfEnvironment();
  if (typeof given === "boolean") return given && {};
  refuseNoTls(given);
  return { ...given };
}

function tlsOfEnvironment(): Tls | false {
  const { env } = process;
  const wanted = (env.JOBLINE_TLS ?? "").toLowerCase();
  if (!["", ...YES, ...NO].includes(wanted)) refuse("JOBLINE_TLS", "must be 1 or 0");
  if (NO.includes(wanted)) return false;
  const tls: Tls = {
    ...(env.JOBLINE_TLS_CA && { ca: env.JOBLINE_TLS_CA }),
    ...(env.JOBLINE_CLIENT_CERTIFICATE && { certificate: env.JOBLINE_CLIENT_CERTIFICATE }),
    ...(env.JOBLINE_CLIENT_KEY && { key: env.JOBLINE_CLIENT_KEY }),
  };
  if (Object.keys(tls).length === 0 && !YES.includes(wanted)) return false;
  refuseNoTls(tls);
  return tls;
}

/** What goes with each call to a server. */
export class Identity {
  readonly #fixed: Metadata;
  readonly #token: (() => string | Promise<string>) | undefined;

  /** Takes what is shown. */
  constructor(metadata: ResolvedAddress["metadata"], token: Token | undefined) {
    this.#fixed = metadataOf(metadata);
    if (typeof token === "function") this.#token = token;
    else if (token !== undefined) this.#fixed.set(AUTHORIZATION, `Bearer ${token}`);
  }

  /** Returns the metadata of all calls, if it is the same for all. */
  get fixed(): Metadata | undefined {
    return this.#token ? undefined : this.#fixed;
  }

  /**
   * Returns the metadata of a call that begins now, with the token of now. Throws NoToken if there is none within so
   * many milliseconds, and the reason of `signal` when that fires.
   */
  async now(patience: number, signal?: AbortSignal): Promise<Metadata> {
    if (!this.#token) return this.#fixed;
    const token = await tokenOf(this.#token, patience, signal);
    const metadata = this.#fixed.clone();
    metadata.set(AUTHORIZATION, `Bearer ${token}`);
    return metadata;
  }

  /** Returns whether the same call may succeed with another token than the one that has ended. */
  renews(error: JoblineError): boolean {
    return this.#token !== undefined && error.reason === TOKEN_EXPIRED;
  }
}

/** Returns the token that a function returns in time. Throws NoToken. */
export async function tokenOf(
  token: () => string | Promise<string>,
  patience: number,
  signal?: AbortSignal,
): Promise<string> {
  let found: unknown;
  let forget: () => void = () => undefined;
  let timer: NodeJS.Timeout | undefined;
  try {
    const late = new Promise<never>((_, reject) => {
      const tooLate = new NoToken(why(`has returned none within ${(patience / 1_000).toFixed(1)} s`));
      timer = setTimeout(() => reject(tooLate), Math.min(patience, TIMER_MAX));
      forget = onAbort(signal, () => reject(signal?.reason));
    });
    found = await Promise.race([token(), late]);
  } catch (error) {
    if (error instanceof NoToken || (signal?.aborted && error === signal.reason)) throw error;
    throw new NoToken(why(`threw ${kindOf(error)}`), { cause: error });
  } finally {
    clearTimeout(timer);
    forget();
  }
  if (!isToken(found)) throw new NoToken(why("returned no word of printable ASCII"));
  return found;
}

/** Returns what kind of error it is; its message may have what a token was asked for with. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return `a value of type ${typeof error}`;
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === "string" && /^\w+$/.test(code) ? `${error.name} (${code})` : error.name;
}

function why(what: string): string {
  return `the function \`token\` ${what}: the call was not sent`;
}
