/** What a client trusts and shows by TLS: files of PEM, which are read again when they have changed. */
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { type ChannelCredentials, credentials } from "@grpc/grpc-js";
import { InvalidArgument } from "./errors.js";
import { refuseNoObject, refuseNoText } from "./given.js";
import { refuseOthers } from "./known_options.js";

/** TLS to a server. Each is a file of PEM, or the text of PEM itself. */
export interface Tls {
  /** The authorities that the server's certificate is checked by; default: those of Node. */
  ca?: string;
  /** The certificate, with its chain, for servers that ask clients for one; it needs its `key`. */
  certificate?: string;
  /** The key of the certificate. */
  key?: string;
}

const TLS_OPTIONS: Record<keyof Required<Tls>, true> = { ca: true, certificate: true, key: true };
/** Milliseconds between looks at the files. */
const LOOK_EVERY = 1_000;
const BLOCK = /-----BEGIN [A-Z ]*CERTIFICATE-----[\s\S]*?-----END [A-Z ]*CERTIFICATE-----/g;

function refuse(why: string): never {
  throw new InvalidArgument(`tls: ${why}`, { fields: { tls: why } });
}

function isText(value: string): boolean {
  return value.includes("-----BEGIN ");
}

/** Throws InvalidArgument for what is no `Tls`. */
export function refuseNoTls(tls: unknown): asserts tls is Tls {
  refuseNoObject("tls", tls);
  refuseOthers(tls as Tls, TLS_OPTIONS);
  for (const [name, value] of Object.entries(tls as Tls)) {
    if (value !== undefined) refuseNoText(`tls.${name}`, value);
  }
  const { certificate, key } = tls as Tls;
  if ((certificate === undefined) !== (key === undefined)) {
    refuse("a certificate needs its key, and a key its certificate");
  }
}

/** The credentials of channels to one server: plaintext without `tls`. */
export class Trust {
  readonly #files: readonly string[];
  #seen = "";
  #lookedAt = Number.NEGATIVE_INFINITY;
  #current: ChannelCredentials;

  /** Reads the files. Throws InvalidArgument for what cannot be read, or does not go together. */
  constructor(private readonly tls: Tls | undefined) {
    const given = [tls?.ca, tls?.certificate, tls?.key].filter((value) => value !== undefined);
    this.#files = given.filter((value) => !isText(value));
    this.#seen = this.look();
    this.#current = tls ? credentialsOf(tls) : credentials.createInsecure();
  }

  /**
   * Returns the credentials of a channel that opens now: the same object until the files have changed. Files that
   * cannot be read, or do not go together, as while they are written, are looked at again later.
   */
  current(now: number): ChannelCredentials {
    if (!this.tls || this.#files.length === 0 || now - this.#lookedAt < LOOK_EVERY) return this.#current;
    this.#lookedAt = now;
    const seen = this.look();
    if (seen === this.#seen) return this.#current;
    try {
      this.#current = credentialsOf(this.tls);
      this.#seen = seen;
    } catch {
      // Those that were read before stay in force.
    }
    return this.#current;
  }

  private look(): string {
    return this.#files
      .map((path) => {
        const { ino, size, mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? {};
        return `${ino} ${size} ${mtimeMs}`;
      })
      .join();
  }
}

function credentialsOf(tls: Tls): ChannelCredentials {
  const [ca, certificate, key] = [
    read("ca", tls.ca),
    read("certificate", tls.certificate),
    read("key", tls.key),
  ];
  if (ca) refuseNoCertificates("ca", ca);
  if (certificate) refuseNoCertificates("certificate", certificate);
  try {
    return credentials.createSsl(ca, key, certificate);
  } catch (error) {
    const { message } = error as Error; // of OpenSSL; it has no part of the key
    if (/key values mismatch/.test(message)) refuse("the key is not that of the certificate");
    return refuse(`the key cannot be read: ${message}`);
  }
}

function read(what: keyof Tls, value: string | undefined): Buffer | null {
  if (value === undefined) return null;
  if (isText(value)) return Buffer.from(value);
  try {
    return readFileSync(value);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = { ENOENT: "no such file or directory", EACCES: "permission denied" }[code ?? ""] ?? message;
    return refuse(`${what}: ${value}: ${why}`);
  }
}

/** OpenSSL passes over what it cannot read of authorities, and no certificate would fit then. */
function refuseNoCertificates(what: string, pem: Buffer): void {
  const blocks = pem.toString("latin1").match(BLOCK) ?? [];
  try {
    if (blocks.length === 0) throw new Error();
    for (const block of blocks) new X509Certificate(block);
  } catch {
    refuse(`${what}: has no certificates in PEM, or damaged ones`);
  }
}
