import type { MessagePort } from "node:worker_threads";
import { Identity } from "../identity.js";
import { oneLine } from "../one_line.js";
import { errorOf } from "../status.js";
import type { Received } from "../stream/received.js";
import { AskedToken } from "./asked_token.js";
import { HealthPort } from "./health_port.js";
import type { FromStream, StreamSettings, ToStream } from "./messages.js";
import { SharedSession } from "./shared_session.js";
import { Stream } from "./stream.js";

/** The stream of one worker, and the port to the worker's handlers in the other thread. */
export class HeldStream {
  private readonly session: SharedSession;
  private readonly stream: Stream;
  private readonly health: HealthPort | undefined;
  private readonly token = new AskedToken((number) => this.tell({ kind: "token", number }));

  /** Opens the stream, and keeps it open until its session is over, or the port is closed. */
  constructor(
    settings: StreamSettings,
    private readonly port: MessagePort,
  ) {
    this.session = new SharedSession(settings);
    const { address } = settings;
    const token = address.asksForToken ? () => this.token.ask() : address.token;
    const identity = new Identity(address.metadata, token);
    this.stream = new Stream(address, identity, this.session, {
      received: (received) => this.handleReceived(received),
      log: (level, text) => this.tell({ kind: "log", level, text: oneLine(text) }),
    });
    this.health = settings.health && new HealthPort(settings.health, this.session, this.stream);
    port.on("message", (message: ToStream) => this.handle(message));
    port.on("close", () => {
      this.stream.stop();
      this.health?.close();
    });
    void this.run();
  }

  private tell(message: FromStream): void {
    this.port.postMessage(message);
  }

  private async run(): Promise<void> {
    try {
      if (this.health) this.tell({ kind: "listening", port: await this.health.listen() });
      await this.stream.run();
    } catch (caught) {
      const { name, message, facts } = errorOf(caught);
      this.tell({ kind: "failed", name, message, facts });
    }
    if (this.health) this.health.isStopped = true;
    this.tell({ kind: "ended" });
  }

  private handleReceived({ opened, fences, runs, jobs, lost, unhandled }: Received): void {
    if (opened) this.tell({ kind: "opened" });
    for (const number of fences) this.tell({ kind: "fence", number });
    for (const { queue, name, ready } of unhandled) {
      const kind = name ? `named ${JSON.stringify(name)}` : "without a name";
      const text = `${ready} jobs ${kind} wait in queue ${queue}, and no worker handles them`;
      this.tell({ kind: "log", level: "warn", text: oneLine(text) });
    }
    if (runs.length > 0 || jobs.length > 0 || lost.length > 0) {
      this.tell({ kind: "delivered", runs, jobs, lost });
    }
  }

  private handle(message: ToStream): void {
    try {
      this.handleMessage(message);
    } catch (error) {
      this.stream.fail(error);
    }
  }

  private handleMessage(message: ToStream): void {
    const { session } = this;
    if (message.kind === "outcomes") session.take(message);
    else if (message.kind === "drain") session.drain(message.keep);
    else if (message.kind === "pause") session.pauseWork(message.keep);
    else if (message.kind === "resume") {
      session.resumeWork();
      this.tell({ kind: "resumed" });
    } else if (message.kind === "release") session.release(message.leave);
    else if (message.kind === "leave") session.leave(message.lease, message.isLost);
    else if (message.kind === "fence") session.session.fence(message.number);
    else if (message.kind === "token") this.token.take(message.answer);
    else this.stream.stop();
    // Without a stream, nobody else would notice that the session is over.
    if (session.session.isOver && !session.session.isOpen) this.stream.stop();
    this.stream.stepSoon();
  }
}
