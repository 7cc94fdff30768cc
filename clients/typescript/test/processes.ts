/** Processes of workers, and what they have noted. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ServerProcess } from "./server.js";

const PROGRAM = fileURLToPath(new URL("./program.js", import.meta.url));

/** One thing that a worker has noted. */
export interface Note {
  readonly what: string;
  readonly id: string;
  readonly delivery: string;
  readonly pid: string;
}

/** The file in which workers note what they begin and end. */
export class Record implements Disposable {
  private readonly directory = mkdtempSync(join(tmpdir(), "jobline-ts-"));
  readonly path = join(this.directory, "record");

  constructor() {
    writeFileSync(this.path, "");
  }

  get notes(): Note[] {
    return readFileSync(this.path, "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => {
        const [what = "", id = "", delivery = "", pid = ""] = line.split(" ");
        return { what, id, delivery, pid };
      });
  }

  /** Ids of the jobs that have ended, each as often as it did. */
  get ended(): string[] {
    return this.notes.filter(({ what }) => what === "end").map(({ id }) => id);
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** A worker in a process of its own. */
export class WorkerProcess implements AsyncDisposable {
  private readonly child: ChildProcess;
  log = "";

  constructor(server: ServerProcess, queue: string, record: Record) {
    const args = [PROGRAM, server.address, queue, record.path];
    this.child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
    this.child.stderr?.on("data", (text: Buffer) => {
      this.log += text.toString();
    });
  }

  /** Sends a signal and waits for the end; returns the exit code, or the signal that ended it. */
  async end(signal: NodeJS.Signals): Promise<number | string | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const exit = once(this.child, "exit");
      this.child.kill(signal);
      await exit;
    }
    return this.child.signalCode ?? this.child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }
}
