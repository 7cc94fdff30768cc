/**
 * Words for a server that does not answer. gRPC's own texts name parts of gRPC, and not always the address; the
 * texts of a server itself are never touched.
 */

/** Parts of gRPC's texts, and what they mean to whoever reads them. The first that fits counts. */
const REASONS: readonly (readonly [part: RegExp, words: string])[] = [
  [/ECONNREFUSED/, "connection refused; is the server running, and is this its address?"],
  [/\bENOENT\b/, "there is no such socket; is the server running, and is this its address?"],
  [/ENOTFOUND|EAI_AGAIN|^Name resolution failed/, "no such host; is its name spelt right?"],
  [/EHOSTUNREACH/, "no route to host; is this its address?"],
  [/ENETUNREACH/, "the network is unreachable; is this machine connected?"],
  [/wrong.version.number/i, "the TLS handshake failed; does the server speak TLS?"],
  [/altname/i, "the TLS handshake failed: its certificate is for another name"],
  [/has expired|CERT_HAS_EXPIRED/, "the TLS handshake failed: its certificate has expired"],
  [/not yet valid/, "the TLS handshake failed: its certificate is not valid yet"],
  [/certificate/i, "the TLS handshake failed: its certificate is not trusted; does `tls` have its `ca`?"],
  [/EPROTO|SSL|TLS/, "the TLS handshake failed"],
  [/Protocol error|HTTP status code/, "it does not speak gRPC; is it the HTTP port?"],
  [/ETIMEDOUT|LB pick|name resolution/, "no answer; does it hang, or is this not its address?"],
  [
    /Failed to connect|ECONNRESET/,
    "the connection was closed; is it a server of Jobline, and does it want TLS?",
  ],
];

/** By TLS, what a server does with a client whose certificate it misses or refuses: it says so, or closes. */
const CLOSED_BY_TLS =
  /Last error: (?:Error: )?(?:Failed to connect|read ECONNRESET)|alert.(?:bad|unsupported|unknown.ca|certificate)/i;
const REFUSED_BY_TLS =
  "the connection was closed after the TLS handshake; does the server ask clients for a certificate, and trust the one of `tls`?";

/** Texts of gRPC about a connection that was never made, and about one that broke. */
const NOT_MADE =
  /^(\w+: )?No connection established|^Name resolution failed|^Received HTTP status code|Waiting for LB pick|waiting for name resolution/;
const BROKE =
  /^Connection dropped|^Stream refused by server|^Failed to start HTTP\/2 stream|^(read|write) E[A-Z]+/;
const CANCELLED = "Cancelled on client";
const TOO_LATE = /^Deadline exceeded(?: after ([\d.]+)s)?/;

/**
 * Returns what to say of a call to `target` that gRPC could not make, with the address and what to check; any other
 * text as it is.
 */
export function sentenceOf(details: string, target: string, isTls = false): string {
  if (NOT_MADE.test(details)) return `cannot connect to ${target}: ${reasonOf(details, isTls)}`;
  if (BROKE.test(details)) return `the connection to ${target} was lost`;
  if (details === CANCELLED) return `the call to ${target} was given up`;
  const [isLate, after] = TOO_LATE.exec(details) ?? [];
  if (isLate === undefined) return details;
  return `no answer from ${target} within ${after ? `${Number(after).toFixed(1)} s` : "its time"}; does it hang?`;
}

function reasonOf(details: string, isTls: boolean): string {
  if (isTls && CLOSED_BY_TLS.test(details)) return REFUSED_BY_TLS;
  const known = REASONS.find(([part]) => part.test(details));
  if (known) return known[1];
  const [, last = details] = /Last error: (?:Error: )?(.*?)(?:\. Resolution note:.*)?$/s.exec(details) ?? [];
  return last.replace(/\s+/g, " ").trim() || "no answer";
}
