/** A real server in a process of its own, which a test can kill and start again at the same address. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { Client, type ClientOptions, Worker, type WorkerOptions } from "@jobline/client";
import type { Job } from "@jobline/client/v1";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
export const PYTHON = process.env.JOBLINE_PYTHON ?? join(ROOT, ".venv/bin/python");
const FOR_TESTS = ["--ballast-bytes=0", "--low-space-bytes=0", "--drain-seconds=0"];

/** What a process says of itself when it is ready. */
interface Ready {
  grpc: string;
  http: string;
}

export class ServerProcess implements AsyncDisposable {
  private child: ChildProcess | undefined;
  private ready: Ready | undefined;

  private constructor(
    private readonly directory: string,
    private readonly flags: readonly string[],
  ) {}

  /** Starts a server on a new directory. */
  static async start(...flags: string[]): Promise<ServerProcess> {
    if (!existsSync(PYTHON)) throw new Error(`${PYTHON} is missing: make setup`);
    const server = new ServerProcess(await mkdtemp(join(tmpdir(), "jobline-ts-")), flags);
    await server.restart();
    return server;
  }

  get address(): string {
    if (!this.ready) throw new Error("the server is not ready");
    return this.ready.grpc;
  }

  /** Kills the process, if there is one, with SIGKILL. */
  async kill(): Promise<void> {
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, "exit");
    child.kill("SIGKILL");
    await exit;
  }

  /** Stops the process for a while: it holds its connections and says nothing. */
  signal(signal: NodeJS.Signals): void {
    this.child?.kill(signal);
  }

  /** Kills the process and starts it again at the same addresses. */
  async restart(): Promise<void> {
    await this.kill();
    for (;;) {
      const ready = await this.launch();
      if (ready) {
        this.ready = ready;
        return;
      }
      // Another process was given the port meanwhile; a start takes long enough to be no busy wait.
      const log = readFileSync(this.log, "utf8");
      if (!log.includes("address already in use"))
        throw new Error(`the server did not start: ${log.slice(-2000)}`);
    }
  }

  private get log(): string {
    return join(this.directory, "server.log");
  }

  private async launch(): Promise<Ready | undefined> {
    const { grpc = "127.0.0.1:0", http = "127.0.0.1:0" } = this.ready ?? {};
    const where = [`--data=${join(this.directory, "data")}`, `--listen=${grpc}`, `--http=${http}`];
    const log = openSync(this.log, "w");
    const child = spawn(PYTHON, ["-m", "jobline_server", ...where, ...FOR_TESTS, ...this.flags], {
      stdio: ["ignore", "pipe", log],
    });
    closeSync(log);
    this.child = child;
    for await (const line of createInterface(child.stdout as Readable)) return JSON.parse(line) as Ready;
    return undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Lines of workers, for tests that look at them. */
export class TestLogger {
  readonly lines: string[] = [];
  info(text: string): void {
    this.lines.push(text);
  }
  warn(text: string): void {
    this.lines.push(text);
  }
  error(text: string): void {
    this.lines.push(text);
  }
  has(part: string): boolean {
    return this.lines.some((line) => line.includes(part));
  }
}

/** Returns a client of a server. */
export function clientOf(server: ServerProcess, options: ClientOptions = {}): Client {
  return new Client({ target: server.address, ...options });
}

/** Starts a server and a client for the tests of a file; they end after the last. */
export async function serverAndClient(): Promise<{ server: ServerProcess; client: Client }> {
  const server = await ServerProcess.start();
  const client = clientOf(server);
  after(async () => {
    await client.close();
    await server[Symbol.asyncDispose]();
  });
  return { server, client };
}

/** Returns a job as the server has it. */
export async function storedJob(client: Client, id: bigint): Promise<Job> {
  const { job } = await client.admin.jobs.getJob({ job: { case: "id", value: id } });
  assert.ok(job, `the server has no job ${id}`);
  return job;
}

/** Returns a worker of a server that logs nothing. */
export function workerOf<S = undefined>(server: ServerProcess, options: WorkerOptions<S> = {}): Worker<S> {
  return new Worker<S>({ target: server.address, logger: new TestLogger(), ...options });
}

/** Returns when something holds. Fails after a while, with what it was. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  seconds = 60,
): Promise<void> {
  const giveUpAt = performance.now() + seconds * 1_000;
  while (!(await holds())) {
    if (performance.now() > giveUpAt) throw new Error(`not within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A promise and what settles it. */
export function signal<T = void>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
