import type { DescService } from "@bufbuild/protobuf";
import { type ClientReadableStream, Metadata, type ServiceError } from "@grpc/grpc-js";
import { onAbort } from "./aborts.js";
import { pauseAfter, RETRY } from "./backoff.js";
import { ClientChannel } from "./client_channel.js";
import { ClientClosed, DeadlineExceeded, JoblineError, NotConnected, Unavailable } from "./errors.js";
import { Identity, type ResolvedAddress } from "./identity.js";
import { type Pushed, pushedOf } from "./push/answers.js";
import type { Call } from "./push/batch.js";
import { PushCalls, REPEAT_MAX } from "./push/calls.js";
import { identify } from "./push/messages.js";
import { type Caller, type CallOptions, type Stub, stubOf } from "./services.js";
import { errorOf, mayRepeat, outcomeUnknown } from "./status.js";
import { JobService, type PushRequest, type PushResponse } from "./v1/job_service_pb.js";

/** Milliseconds for which a client that never reached its server looks for it. */
const CONNECT_MAX = 5_000;
/** Milliseconds for the call that tells why there is no connection. */
const WHY_MAX = 500;
/** Any server of gRPC answers this, if only by saying that it does not know the method. */
const HEALTH_CHECK = "/grpc.health.v1.Health/Check";
const NOTHING = new Uint8Array();
/** Share of a push's time that one try may take, and its most: a server that hangs is noticed. */
const TRY_SHARE = 1 / 3;
const TRY_MAX = 5_000;

const asIs = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const same = (bytes: Buffer): Uint8Array => bytes;

/** A channel, and how calls on it are made: deadline, metadata, typed errors, retries of pushes. */
export class Connection implements Caller {
  /** HOST:PORT of the server. */
  readonly target: string;
  private readonly isTls: boolean;
  readonly #channel: ClientChannel;
  readonly #identity: Identity;
  private readonly stubs = new Map<DescService, unknown>();
  /** Whether the server has answered once. */
  isReached = false;
  private reaching: Promise<void> | undefined;
  private isClosed = false;
  /** The numbers of push calls. */
  readonly calls = new PushCalls();

  /** Opens a channel; `timeout` is in milliseconds. */
  constructor(
    address: ResolvedAddress,
    readonly timeout: number,
  ) {
    this.target = address.target;
    this.isTls = address.tls !== false;
    this.#channel = new ClientChannel(address);
    this.#identity = new Identity(address.metadata, address.token);
  }

  /** Returns the stub of a service. */
  stub<S extends DescService>(service: S): Stub<S> {
    let stub = this.stubs.get(service) as Stub<S> | undefined;
    if (!stub) {
      stub = stubOf(service, this);
      this.stubs.set(service, stub);
    }
    return stub;
  }

  /** Closes the channel. */
  close(): void {
    this.isClosed = true;
    this.#channel.close();
  }

  /**
   * Makes a unary call, and a second one if its token has ended and another can be had. Throws NotConnected if the
   * server was never reached, NoToken, and typed errors.
   */
  async unary(path: string, request: Uint8Array, options: CallOptions): Promise<Uint8Array> {
    if (!this.isReached) await this.reach();
    const { timeout = this.timeout, signal } = options;
    const endsAt = performance.now() + timeout;
    try {
      return await this.oneCall(path, request, endsAt, signal);
    } catch (error) {
      if (!this.renews(error)) throw error;
      return this.oneCall(path, request, endsAt, signal);
    }
  }

  /** Returns whether a call that has ended with this error may succeed with the token of now. */
  renews(error: unknown): boolean {
    return error instanceof JoblineError && this.#identity.renews(error);
  }

  private async oneCall(
    path: string,
    request: Uint8Array,
    endsAt: number,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array> {
    const left = () => Math.max(0, endsAt - performance.now());
    signal?.throwIfAborted();
    const fixed = this.#identity.fixed;
    const metadata = fixed ?? (await this.#identity.now(left(), signal));
    this.refuseClosed();
    return new Promise<Uint8Array>((resolve, reject) => {
      const { grpc, end } = this.#channel.begin();
      const call = grpc.makeUnaryRequest(
        path,
        asIs,
        same,
        request,
        metadata,
        { deadline: Date.now() + left() },
        (error, answer) => {
          end();
          forget();
          if (answer !== undefined && !error) resolve(answer);
          else reject(signal?.aborted ? signal.reason : errorOf(error, this.target, this.isTls));
        },
      );
      const forget = onAbort(signal, () => call.cancel());
    });
  }

  /** Makes a call whose answers are a stream; it is cancelled when its reader stops. */
  async *stream(path: string, request: Uint8Array, options: CallOptions): AsyncGenerator<Uint8Array> {
    if (!this.isReached) await this.reach();
    const { timeout, signal } = options;
    signal?.throwIfAborted();
    const metadata =
      this.#identity.fixed ??
      (await this.#identity.now(Math.min(timeout ?? this.timeout, this.timeout), signal));
    this.refuseClosed();
    const deadline = timeout === undefined ? Number.POSITIVE_INFINITY : Date.now() + timeout;
    const { grpc, end } = this.#channel.begin();
    let call: ClientReadableStream<Uint8Array> | undefined;
    let forget: () => void = () => undefined;
    try {
      const opened = grpc.makeServerStreamRequest(path, asIs, same, request, metadata, { deadline });
      call = opened;
      forget = onAbort(signal, () => opened.cancel());
      for await (const answer of opened) yield answer as Uint8Array;
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw errorOf(error, this.target, this.isTls);
    } finally {
      end();
      forget();
      call?.on("error", () => undefined); // of the cancel, which nobody waits for
      call?.cancel();
    }
  }

  /** Makes one try of a push. */
  tryPush(request: PushRequest): Promise<PushResponse> {
    const timeout = Math.min(this.timeout * TRY_SHARE, TRY_MAX);
    return this.stub(JobService).push(request, { timeout });
  }

  /** Pushes `count` jobs, and repeats the call until there is a definite answer or no time is left. */
  async push(request: PushRequest, count: number): Promise<Pushed[]> {
    const call = request.requestId ? undefined : this.calls.begin();
    identify(request, call);
    const giveUpAt = performance.now() + Math.min(this.timeout, REPEAT_MAX);
    for (let tries = 1; ; tries += 1) {
      try {
        const pushed = pushedOf(await this.tryPush(request), count);
        this.calls.over(call, true);
        return pushed;
      } catch (caught) {
        const error = errorOf(caught);
        const pause = Math.max(error.retryAfter ?? 0, pauseAfter(RETRY, tries, Math.random));
        if (!mayRepeat(error, tries) || performance.now() + pause > giveUpAt) {
          throw this.givenUp(call, error, tries);
        }
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  private givenUp(call: Call | undefined, error: JoblineError, tries: number): JoblineError {
    const known = outcomeUnknown(error, tries);
    this.calls.over(call, known.definite);
    return known;
  }

  private refuseClosed(): void {
    if (this.isClosed) throw new ClientClosed("the client is closed");
  }

  /** Returns when the server was reached once. Before that, nothing of a call that fails was sent. */
  private reach(): Promise<void> {
    this.reaching ??= this.tryReach().finally(() => {
      this.reaching = undefined;
    });
    return this.reaching;
  }

  private async tryReach(): Promise<void> {
    this.refuseClosed();
    const patience = Math.min(CONNECT_MAX, this.timeout);
    const { grpc, end } = this.#channel.begin();
    const isReady = await new Promise<boolean>((resolve) => {
      grpc.waitForReady(Date.now() + patience, (error) => resolve(!error));
    });
    end();
    this.refuseClosed();
    // That says that there is no connection; only a call says why. Any reply to it is one of a server.
    if (!isReady) await this.askForLife();
    this.isReached = true;
  }

  /** Asks for a sign of life. Throws NotConnected without one. */
  private async askForLife(): Promise<void> {
    const { grpc, end } = this.#channel.begin();
    const why = await new Promise<ServiceError | null>((resolve) => {
      const deadline = Date.now() + WHY_MAX;
      grpc.makeUnaryRequest(HEALTH_CHECK, asIs, same, NOTHING, new Metadata(), { deadline }, resolve);
    });
    end();
    this.refuseClosed();
    if (!why) return;
    const error = errorOf(why, this.target, this.isTls);
    const isOfServer = !(error instanceof Unavailable || error instanceof DeadlineExceeded);
    if (isOfServer && !error.message.startsWith("cannot connect")) return;
    throw new NotConnected(error.message, { code: error.facts.code ?? "" });
  }
}
