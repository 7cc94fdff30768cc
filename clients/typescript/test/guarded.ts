/** What a server that guards itself needs, and its callers: keys, and certificates. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PYTHON } from "./server.js";

/** Writes authorities, and certificates of each, into the folder of its argument. */
const ISSUE = `
import datetime as dt, sys, trustme
from pathlib import Path
folder = Path(sys.argv[1])
ca, other, past = trustme.CA(), trustme.CA(), dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)
ca.cert_pem.write_to_path(folder / "ca.pem")
other.cert_pem.write_to_path(folder / "other.pem")
for name, issuer, host, end in [
    ("server", ca, "127.0.0.1", None), ("renewed", ca, "127.0.0.1", None), ("expired", ca, "127.0.0.1", past),
    ("elsewhere", ca, "jobs.example", None), ("client", ca, "worker.example", None),
    ("late", ca, "worker.example", past), ("stranger", other, "worker.example", None),
]:
    issued = issuer.issue_cert(host, not_after=end)
    (folder / f"{name}.key").write_bytes(issued.private_key_pem.bytes())
    (folder / f"{name}.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
`;

/** A folder with the certificates, and a file of keys and roles. */
export class Guard implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "jobline-ts-guard-"));

  constructor() {
    execFileSync(PYTHON, ["-c", ISSUE, this.folder]);
  }

  /** Returns the path of a file in the folder. */
  path(name: string): string {
    return join(this.folder, name);
  }

  /** Returns the flags of a server with a certificate. */
  tls(name = "server", mutual = false): string[] {
    const own = [`--tls-certificate=${this.path(`${name}.pem`)}`, `--tls-key=${this.path(`${name}.key`)}`];
    return mutual ? [...own, `--tls-client-ca=${this.path("ca.pem")}`] : own;
  }

  /** Writes the file of keys, each with a role of its own, and returns the flag of a server. */
  auth(...keys: Key[]): string {
    writeFileSync(this.path("auth.new"), keys.map(linesOf).join(""));
    renameSync(this.path("auth.new"), this.path("auth.toml")); // a server that reads it meanwhile sees all of it
    return `--auth=${this.path("auth.toml")}`;
  }

  /** Puts one certificate and its key in the place of others. */
  replace(name: string, by: string): void {
    for (const end of ["key", "pem"]) {
      copyFileSync(this.path(`${by}.${end}`), this.path("new"));
      renameSync(this.path("new"), this.path(`${name}.${end}`));
    }
  }

  /** Writes a file. */
  write(name: string, text: string): void {
    writeFileSync(this.path(name), text);
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true });
  }
}

/** A key in the file of a server. */
export interface Key {
  readonly name: string;
  readonly queues?: readonly string[];
  readonly verbs?: readonly string[];
  readonly expires?: Date;
  /** The name of who has it; default: that of the key. */
  readonly caller?: string;
  /** The name of an older key of the same caller, whose time is over. */
  readonly ended?: string;
}

/** Returns the API key of a name. */
export function keyOf(name: string): string {
  return `jl_${createHash("sha256").update(name).digest("base64url")}`;
}

function hashOf(name: string, expires?: Date): string {
  const hash = `sha256:${createHash("sha256").update(keyOf(name)).digest("hex")}`;
  return `{ hash = "${hash}"${expires ? `, expires = ${expires.toISOString()}` : ""} }`;
}

const VERBS = ["push", "work", "read", "read_payload", "manage"];

function linesOf({ name, caller = name, queues = ["*"], verbs = VERBS, expires, ended }: Key): string {
  const hashes = [hashOf(name, expires), ...(ended ? [hashOf(ended, new Date("2020-01-01"))] : [])];
  return `
[[roles.${caller}]]
queues = ${JSON.stringify(queues)}
verbs = ${JSON.stringify(verbs)}

[[keys]]
name = "${caller}"
roles = ["${caller}"]
hashes = [${hashes.join(", ")}]
`;
}
