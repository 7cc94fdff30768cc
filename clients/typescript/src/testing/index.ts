/** For tests of programs that use Jobline: the real server, in memory, with a clock that the test moves. */
import { refuseOthers } from "../known_options.js";
import type { PayloadCodec } from "../sealing/payload_codec.js";
import { type DevServer, startDevServer } from "./dev_server.js";
import { TestJobline } from "./kit.js";

export type { Conditions, PushedConditions, StateName, What } from "./conditions.js";
export type { AddHandlers, TestJobline } from "./kit.js";
export type { SeenJob } from "./seen_job.js";
export type { WorkOneOptions } from "./work_one.js";

/** How a test gets its server. */
export interface TestOptions {
  /** The time at which its clock stands; default: that of the machine. A text is read as `new Date(text)`. */
  start?: Date | string;
  /** The command; default: JOBLINE_COMMAND, else `jobline` of the PATH. */
  command?: string;
  /** The codec of the program, which opens what it has sealed. */
  codec?: PayloadCodec;
}

/** Servers that no test has, by the command that started them. */
const free = new Map<string, DevServer[]>();

/**
 * Returns an empty server for one test. The process of the server is started once in this process, ends with it,
 * and serves one test after the other; tests that run at the same time have one each. One that a test has killed is
 * replaced.
 *
 * ```ts
 * await using jobline = await testJobline({ start: "2026-03-01T08:30:00Z" });
 * ```
 *
 * Throws an Error that says what to install if the command is not found.
 */
export async function testJobline(options: TestOptions = {}): Promise<TestJobline> {
  refuseOthers(options, { start: true, command: true, codec: true });
  const { start, command = "", codec } = options;
  const servers = free.get(command) ?? [];
  free.set(command, servers);
  const moment = start === undefined ? undefined : new Date(start);
  const begin = (server: DevServer) => {
    const giveBack = () => {
      if (!server.isEnded) servers.push(server);
    };
    const { address, whenEnded } = server;
    return TestJobline.begin({ address, codec, whenEnded, giveBack }, moment);
  };
  for (let used = servers.pop(); used; used = servers.pop()) {
    if (used.isEnded) continue;
    try {
      return await begin(used);
    } catch (error) {
      // A test that has killed its server may be over before this process knows of the end.
      if (!used.isEnded) throw error;
    }
  }
  return begin(await startDevServer(command || undefined));
}
