import { Client as GrpcClient } from "@grpc/grpc-js";
import { channelOptions } from "./channel.js";
import type { ResolvedAddress } from "./identity.js";
import { Trust } from "./tls.js";

/** A channel of gRPC, and how many calls are open on it. */
class OneChannel {
  private calls = 0;
  private isOld = false;

  constructor(readonly grpc: GrpcClient) {}

  /** Notes a call; returns what notes its end. */
  begin(): () => void {
    this.calls += 1;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.calls -= 1;
      this.closeIfIdle();
    };
  }

  /** Closes it after its last call: gRPC refuses calls that wait for a connection when it is closed. */
  retire(): void {
    this.isOld = true;
    this.closeIfIdle();
  }

  private closeIfIdle(): void {
    if (this.isOld && this.calls === 0) this.grpc.close();
  }
}

/** The channel of a client: another one takes its place when the files of its TLS have changed. */
export class ClientChannel {
  readonly #address: ResolvedAddress;
  readonly #trust: Trust;
  #credentials: unknown;
  #current: OneChannel;

  /** Opens a channel. */
  constructor(address: ResolvedAddress) {
    this.#address = address;
    this.#trust = new Trust(address.tls || undefined);
    this.#current = this.open();
  }

  /** Returns the channel for a call that begins now, and what to call at its end. */
  begin(): { readonly grpc: GrpcClient; end(): void } {
    if (this.#trust.current(performance.now()) !== this.#credentials) {
      this.#current.retire();
      this.#current = this.open();
    }
    return { grpc: this.#current.grpc, end: this.#current.begin() };
  }

  /** Closes the channel. */
  close(): void {
    this.#current.grpc.close();
  }

  private open(): OneChannel {
    const credentials = this.#trust.current(performance.now());
    this.#credentials = credentials;
    const { target } = this.#address;
    return new OneChannel(new GrpcClient(target, credentials, channelOptions(target)));
  }
}
