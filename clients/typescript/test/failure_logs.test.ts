/** What somebody reads whose handler has failed, or whose program ends by an error: short, and nothing twice. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { Cancel, Client, Dead, defineJob, NotConnected, Retry } from "@jobline/client";
import { errorOf } from "../src/worker/settling.js";
import { serverAndClient, storedJob, TestLogger, workerOf } from "./server.js";

const { server, client } = await serverAndClient();

test("a stack ends where the handler begins, in the log and in the job", async () => {
  const broken = defineJob<null>({ queue: "broken", maxAttempts: 1 });
  const logger = new TestLogger();
  await using worker = workerOf(server, { logger }).handle(broken, function handler() {
    throw new RangeError("no luck", { cause: new Error("below") });
  });
  await worker.start();
  const { id } = await client.push(broken, null);
  assert.equal((await client.wait(id)).state, "dead");
  const { history } = await storedJob(client, id);
  const stack = history[0]?.error?.stack ?? "";
  assert.match(
    stack,
    /^RangeError: no luck\n +at [^\n]*failure_logs\.test\.js[^\n]*\nCaused by: Error: below\n/,
  );
  assert.doesNotMatch(stack, /src\/worker|node:internal/);
  assert.ok(logger.has(`attempt 1 of job ${id} (broken) failed: ${stack}`), logger.lines.join("\n"));
});

test("a job that its handler cancels or buries has not failed an attempt", async () => {
  const kinds = defineJob<string>({ queue: "not-failures", maxAttempts: 2, backoff: { delays: ["10ms"] } });
  const logger = new TestLogger();
  await using worker = workerOf(server, { logger }).handle(kinds, (kind, { attempt }) => {
    if (kind === "cancel") throw new Cancel("not wanted");
    if (kind === "dead") return new Dead("hopeless");
    if (attempt === 1) throw new Retry("10ms", { cause: new Error("not yet") });
    return undefined;
  });
  await worker.start();
  const pushed = await client.pushMany(kinds, ["cancel", "dead", "retry"]);
  for await (const end of client.waitAll(pushed.map(({ id }) => id))) assert.ok(end.state);
  const failed = logger.lines.filter((line) => line.startsWith("attempt "));
  assert.equal(failed.length, 1, failed.join("\n"));
  assert.match(failed[0] ?? "", new RegExp(`^attempt 1 of job ${pushed[2]?.id} .* failed: Retry: .*`));
});

test("an AggregateError is told with the errors that it has, also where it has no message", () => {
  const errors = [
    new Error("connect ECONNREFUSED ::1:5432"),
    new Error("connect ECONNREFUSED 127.0.0.1:5432"),
  ];
  const { message, stack } = errorOf(new AggregateError(errors)); // as Node's sockets make them
  assert.equal(message, "connect ECONNREFUSED ::1:5432; connect ECONNREFUSED 127.0.0.1:5432");
  for (const { message: one } of errors) assert.match(stack, new RegExp(`\nOne of: Error: ${one}\n`));
  const many = Array.from({ length: 1_000 }, (_, n) => new Error(`e${n}`));
  const outer = errorOf(new TypeError("fetch failed", { cause: new AggregateError(many, "all") }));
  assert.equal(outer.message, "fetch failed");
  assert.match(outer.stack, /\nCaused by: AggregateError: all\n[\s\S]*\nOne of: Error: e4\n/);
  assert.doesNotMatch(outer.stack, /e5/);
  assert.equal(errorOf(new AggregateError(["a text", null], "")).message, "a text; null");
});

test("an error that ends a program is shown once", async () => {
  await using lost = new Client({ target: "127.0.0.1:1", timeout: "200ms" });
  const error: unknown = await lost.push("q", 1).catch((caught: unknown) => caught);
  assert.ok(error instanceof NotConnected);
  assert.equal(inspect(error, { depth: 9 }).split("cannot connect to").length, 2, inspect(error));
});
