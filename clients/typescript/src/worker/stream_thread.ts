import { existsSync } from "node:fs";
import { MessageChannel, type MessagePort, Worker as Thread } from "node:worker_threads";
import type { StreamSettings } from "../thread/messages.js";

/** Milliseconds for which the thread waits for another worker, after the last one has ended. */
const IDLE_MAX = 10_000;

/** Called when the thread has ended by itself; `error` is what broke it. */
type OnEnd = (error: Error | undefined) => void;

/**
 * The thread that holds the streams of this program's workers. There is one: loading gRPC and the messages takes
 * a core some tenths of a second, and a dozen threads that begin at once took it many times.
 */
class StreamThread {
  private readonly thread: Thread;
  private readonly users = new Map<MessagePort, OnEnd>();
  private timer: NodeJS.Timeout | undefined;
  private broke: Error | undefined;
  isEnded = false;

  constructor() {
    const module = new URL("../thread/main.js", import.meta.url);
    if (module.protocol === "file:" && !existsSync(module)) {
      throw new Error(
        `the module of the workers' thread is missing: ${module}; keep @jobline/client out of bundles`,
      );
    }
    this.thread = new Thread(module, { name: "jobline-stream" });
    this.thread.on("error", (error: Error) => {
      this.broke = error;
    });
    this.thread.on("exit", () => {
      this.isEnded = true;
      for (const onEnd of this.users.values()) onEnd(this.broke);
      this.users.clear();
    });
  }

  open(settings: StreamSettings, onEnd: OnEnd): MessagePort {
    const { port1, port2 } = new MessageChannel();
    clearTimeout(this.timer);
    this.users.set(port1, onEnd);
    this.thread.ref();
    this.thread.postMessage({ settings, port: port2 }, [port2]);
    return port1;
  }

  close(port: MessagePort): void {
    port.close();
    if (!this.users.delete(port) || this.users.size > 0) return;
    this.thread.unref();
    this.timer = setTimeout(() => {
      this.isEnded = true;
      void this.thread.terminate();
    }, IDLE_MAX).unref();
  }
}

let shared: StreamThread | undefined;

/** Has the thread hold one more stream. Returns the port to it, and what closes it. */
export function openStream(
  settings: StreamSettings,
  onEnd: OnEnd,
): { readonly port: MessagePort; close(): void } {
  if (!shared || shared.isEnded) shared = new StreamThread();
  const thread = shared;
  const port = thread.open(settings, onEnd);
  return { port, close: () => thread.close(port) };
}
