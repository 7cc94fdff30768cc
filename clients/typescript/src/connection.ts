import type { DescService } from "@bufbuild/protobuf";
import { Client as GrpcClient, type Metadata, type ServiceError } from "@grpc/grpc-js";
import { onAbort } from "./aborts.js";
import { pauseAfter, RETRY } from "./backoff.js";
import { type Address, CHANNEL_OPTIONS, credentialsOf, metadataOf, targetOf } from "./channel.js";
import { ClientClosed, DeadlineExceeded, type JoblineError, NotConnected, Unavailable } from "./errors.js";
import { type Pushed, pushedOf } from "./push/answers.js";
import type { Call } from "./push/batch.js";
import { PushCalls, REPEAT_MAX } from "./push/calls.js";
import { identify } from "./push/messages.js";
import { type Caller, type CallOptions, type Stub, stubOf } from "./services.js";
import { errorOf, outcomeUnknown } from "./status.js";
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
  private readonly target: string;
  private readonly grpc: GrpcClient;
  private readonly metadata: Metadata;
  private readonly stubs = new Map<DescService, unknown>();
  private isReached = false;
  private reaching: Promise<void> | undefined;
  private isClosed = false;
  /** The numbers of push calls. */
  readonly calls = new PushCalls();

  /** Opens a channel; `timeout` is in milliseconds. */
  constructor(
    address: Address,
    readonly timeout: number,
  ) {
    this.target = targetOf(address);
    this.metadata = metadataOf(address);
    this.grpc = new GrpcClient(this.target, credentialsOf(address), CHANNEL_OPTIONS);
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
    this.grpc.close();
  }

  /** Makes a unary call. Throws NotConnected if the server was never reached, and typed errors. */
  async unary(path: string, request: Uint8Array, options: CallOptions): Promise<Uint8Array> {
    if (!this.isReached) await this.reach();
    this.refuseClosed();
    const { timeout = this.timeout, signal } = options;
    signal?.throwIfAborted();
    return new Promise<Uint8Array>((resolve, reject) => {
      const deadline = Date.now() + timeout;
      const call = this.grpc.makeUnaryRequest(
        path,
        asIs,
        same,
        request,
        this.metadata,
        { deadline },
        (error, answer) => {
          forget();
          if (answer !== undefined && !error) resolve(answer);
          else reject(signal?.aborted ? signal.reason : errorOf(error, this.target));
        },
      );
      const forget = onAbort(signal, () => call.cancel());
    });
  }

  /** Makes a call whose answers are a stream; it is cancelled when its reader stops. */
  async *stream(path: string, request: Uint8Array, options: CallOptions): AsyncGenerator<Uint8Array> {
    if (!this.isReached) await this.reach();
    this.refuseClosed();
    const { timeout, signal } = options;
    signal?.throwIfAborted();
    const deadline = timeout === undefined ? Number.POSITIVE_INFINITY : Date.now() + timeout;
    const call = this.grpc.makeServerStreamRequest(path, asIs, same, request, this.metadata, { deadline });
    const forget = onAbort(signal, () => call.cancel());
    try {
      for await (const answer of call) yield answer as Uint8Array;
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw errorOf(error, this.target);
    } finally {
      forget();
      call.on("error", () => undefined); // of the cancel, which nobody waits for
      call.cancel();
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
        if (error.definite || !error.retryable || performance.now() + pause > giveUpAt) {
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
    const isReady = await new Promise<boolean>((resolve) => {
      this.grpc.waitForReady(Date.now() + patience, (error) => resolve(!error));
    });
    this.refuseClosed();
    // That says that there is no connection; only a call says why. Any reply to it is one of a server.
    if (!isReady) await this.askForLife();
    this.isReached = true;
  }

  /** Asks for a sign of life. Throws NotConnected without one. */
  private async askForLife(): Promise<void> {
    const why = await new Promise<ServiceError | null>((resolve) => {
      const deadline = Date.now() + WHY_MAX;
      this.grpc.makeUnaryRequest(HEALTH_CHECK, asIs, same, NOTHING, this.metadata, { deadline }, resolve);
    });
    this.refuseClosed();
    if (!why) return;
    const error = errorOf(why, this.target);
    const isOfServer = !(error instanceof Unavailable || error instanceof DeadlineExceeded);
    if (isOfServer && !error.message.startsWith("cannot connect")) return;
    throw new NotConnected(error.message, { code: error.facts.code ?? "" });
  }
}
