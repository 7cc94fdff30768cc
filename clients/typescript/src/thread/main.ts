/**
 * The thread that holds the streams of a program's workers. No handler runs here, so one that blocks its event
 * loop for a minute keeps its lease: heartbeats, revokes, confirms, reconnects and the watchdog go on.
 */
import { parentPort } from "node:worker_threads";
import { HeldStream } from "./held_stream.js";
import type { Beginning } from "./messages.js";

if (!parentPort) throw new Error("this module is the thread of the workers' streams");
parentPort.on("message", ({ settings, port }: Beginning) => new HeldStream(settings, port));
