import type { ChannelCredentials, Metadata } from "@grpc/grpc-js";
import type { Identity } from "../identity.js";
import { Trust } from "../tls.js";
import type { StreamAddress } from "./messages.js";

/** Milliseconds for the function that returns the token of now. */
const TOKEN_MAX = 10_000;

/** What a stream shows, and what it trusts. */
export class Access {
  private trust: Trust | undefined;

  /** Takes it from an address. */
  constructor(
    private readonly address: StreamAddress,
    /** What goes with each stream. */
    readonly identity: Identity,
  ) {}

  /** Returns it for a stream that opens now. Throws NoToken, InvalidArgument for files, and the reason of `signal`. */
  async now(signal: AbortSignal): Promise<{ metadata: Metadata; credentials: ChannelCredentials }> {
    const metadata = this.identity.fixed ?? (await this.identity.now(TOKEN_MAX, signal));
    this.trust ??= new Trust(this.address.tls || undefined);
    return { metadata, credentials: this.trust.current(performance.now()) };
  }
}
