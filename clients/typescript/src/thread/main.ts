/**
 * The thread that holds a worker's stream. No handler runs here, so one that blocks its event loop for a minute
 * keeps its lease: heartbeats, revokes, confirms, reconnects and the watchdog go on.
 */
import { parentPort, workerData } from "node:worker_threads";
import { errorOf } from "../status.js";
import type { Received } from "../stream/received.js";
import type { FromStream, StreamSettings, ToStream } from "./messages.js";
import { SharedSession } from "./shared_session.js";
import { Stream } from "./stream.js";

const port = parentPort;
if (!port) throw new Error("this module is the thread of a worker's stream");
const settings = workerData as StreamSettings;

const tell = (message: FromStream) => port.postMessage(message);
const session = new SharedSession(settings);

function received({ opened, fences, runs, jobs, lost, unhandled }: Received): void {
  if (opened) tell({ kind: "opened" });
  for (const number of fences) tell({ kind: "fence", number });
  for (const { queue, name, ready } of unhandled) {
    const kind = name ? `named ${JSON.stringify(name)}` : "without a name";
    const text = `${ready} jobs ${kind} wait in queue ${queue}, and no worker handles them`;
    tell({ kind: "log", level: "warn", text });
  }
  if (runs.length > 0 || jobs.length > 0 || lost.length > 0) tell({ kind: "delivered", runs, jobs, lost });
}

const stream = new Stream(settings.address, session, {
  received,
  log: (level, text) => tell({ kind: "log", level, text }),
});

function handle(message: ToStream): void {
  if (message.kind === "outcomes") session.take(message);
  else if (message.kind === "drain") session.drain(message.keep);
  else if (message.kind === "release") session.release(message.leave);
  else if (message.kind === "leave") session.leave(message.lease, message.isLost);
  else if (message.kind === "fence") session.session.fence(message.number);
  else stream.stop();
  // Without a stream, nobody else would notice that the session is over.
  if (session.session.isOver && !session.session.isOpen) stream.stop();
  stream.stepSoon();
}

port.on("message", handle);
stream
  .run()
  .catch((caught: unknown) => {
    const { name, message, facts } = errorOf(caught);
    const { cause: _, ...plain } = facts;
    tell({ kind: "failed", name, message, facts: plain });
  })
  .finally(() => {
    tell({ kind: "ended" });
    port.close();
  });
