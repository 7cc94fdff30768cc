import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { createInterface } from "node:readline";

/** Milliseconds that the command has to say that it is ready. */
const START_MAX = 60_000;
/** Characters of its stderr that an error shows. */
const STDERR_SHOWN = 2_000;
const OTHERS = "the option `command`, or JOBLINE_COMMAND";
// Nothing is on PyPI yet: the server comes from a checkout, as the README of the project says.
const FROM_CHECKOUT = "in a checkout of Jobline: `pip install './clients/python[cli]' '.[native]'`";
const INSTALL = `Install it ${FROM_CHECKOUT}, or say where it is: ${OTHERS}`;
const LOOK = `Is it the command of Jobline, and a new one? Another one can be given by ${OTHERS}`;
const ARGUMENTS = ["dev", "--memory", "--clock=manual", "--port", "0", "--json", "--until-eof"];

/** A server that was started, and whether its process lives. */
export interface DevServer {
  /** HOST:PORT. */
  readonly address: string;
  /** Whether its process has ended: a test may have killed it. */
  readonly isEnded: boolean;
  /** Settles when it ends. */
  readonly whenEnded: Promise<void>;
}

/** Returns the command that starts a server: of the option, of JOBLINE_COMMAND, else `jobline` of the PATH. */
function commandOf(option: string | undefined): string {
  return option || process.env.JOBLINE_COMMAND || "jobline";
}

/** Variables of Jobline are settings of some other server, or of clients. */
function plainEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("JOBLINE_")));
}

/** Starts a server in memory, whose clock is moved by hand; it ends with this process. */
export async function startDevServer(option: string | undefined): Promise<DevServer> {
  const command = commandOf(option);
  const child = spawn(command, ARGUMENTS, { stdio: ["pipe", "pipe", "pipe"], env: plainEnvironment() });
  let said = "";
  child.stderr.on("data", (text: Buffer) => {
    said = (said + text.toString()).slice(-STDERR_SHOWN);
  });
  child.stdin.on("error", () => undefined);
  try {
    const address = await readyAddress(child);
    letGo(child);
    const whenEnded = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    return {
      address,
      whenEnded,
      get isEnded() {
        return child.exitCode !== null || child.signalCode !== null;
      },
    };
  } catch (error) {
    child.kill("SIGKILL");
    const { code, message } = error as NodeJS.ErrnoException;
    const isMissing = code === "ENOENT";
    const why = isMissing ? "there is no such command" : code === "EACCES" ? "it may not be run" : message;
    const more = said.trim() && `\nIt said:\n${said.trim()}`;
    const hint = isMissing ? INSTALL : LOOK;
    throw new Error(`\`${command} dev\` did not start: ${why}. ${hint}.${more}`, { cause: error });
  }
}

function readyAddress(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`it was not ready after ${START_MAX / 1_000} s`)),
      START_MAX,
    );
    const end = (error: Error) => {
      clearTimeout(timer);
      reject(error);
    };
    child.once("error", end);
    // `close` and not `exit`: by then all that it said has been read.
    child.once("close", (code) => end(new Error(`it ended with code ${code}`)));
    createInterface({ input: child.stdout as Socket }).once("line", (line) => {
      clearTimeout(timer);
      try {
        resolve(String((JSON.parse(line) as { grpc: unknown }).grpc));
      } catch {
        reject(new Error(`it said ${JSON.stringify(line.slice(0, 200))}`));
      }
    });
  });
}

/** The server does not keep this process alive, and stops at the end of its stdin: with this process. */
function letGo(child: ChildProcess): void {
  child.unref();
  for (const pipe of [child.stdin, child.stdout, child.stderr]) (pipe as unknown as Socket).unref();
}
