import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  Client,
  defineJob,
  InvalidArgument,
  NewJob,
  type Outgoing,
  type PushMiddleware,
  UniqueKeyHeld,
  withHeaders,
} from "@jobline/client";
import { clientOf, ServerProcess, storedJob } from "./server.js";

let server: ServerProcess;
before(async () => {
  server = await ServerProcess.start();
});
after(() => server[Symbol.asyncDispose]());

const text = (job: Outgoing | undefined) => Buffer.from(job?.payload ?? []).toString();

test("push middleware sees each call once, with complete jobs, and may change them", async () => {
  const seen: Outgoing[][] = [];
  const order: string[] = [];
  const look: PushMiddleware = async (jobs, next) => {
    order.push("look");
    seen.push([...jobs]);
    return next(jobs);
  };
  const mark: PushMiddleware = async (jobs, next) => {
    order.push("mark");
    return next(jobs.map((job) => withHeaders(job, { by: "mark" })));
  };
  await using client = clientOf(server, { middleware: [look, mark] });
  const kind = defineJob<{ n: number }>({ queue: "seen", name: "kind", priority: 2, headers: { a: "1" } });

  const { id } = await client.push(kind, { n: 1 }, { jobKey: "k", delay: "1h" });
  assert.equal((await client.push(kind, { n: 1 }, { jobKey: "k", delay: "1h" })).outcome, "duplicate");
  await client.pushMany(kind, [{ n: 2 }, new NewJob({ n: 3 }, { headers: { b: "2" }, uniqueKey: "u" })]);
  await client.pushMany(kind, [{ n: 4 }, { n: 5 }]);

  assert.deepEqual(order.slice(0, 2), ["look", "mark"]);
  assert.deepEqual(
    seen.map((jobs) => jobs.map(text)),
    [['{"n":1}'], ['{"n":1}'], ['{"n":2}', '{"n":3}'], ['{"n":4}', '{"n":5}']],
  );
  const { name, priority, contentType, jobKey, delay } = seen[0]?.[0]?.options ?? {};
  assert.deepEqual([name, priority, contentType, jobKey, delay], ["kind", 2, "application/json", "k", "1h"]);

  const job = await storedJob(client, id);
  assert.deepEqual(job.options?.headers, { a: "1", by: "mark" });
  const { jobs } = await client.admin.jobs.listJobs({ filter: { queue: "seen" }, includePayloads: true });
  assert.deepEqual(
    jobs.map((one) => [Buffer.from(one.payload).toString(), one.options?.headers, one.options?.priority]),
    [
      ['{"n":1}', { a: "1", by: "mark" }, 2],
      ['{"n":2}', { a: "1", by: "mark" }, 2],
      ['{"n":3}', { a: "1", b: "2", by: "mark" }, 2],
      ['{"n":4}', { a: "1", by: "mark" }, 2],
      ['{"n":5}', { a: "1", by: "mark" }, 2],
    ],
  );
  await assert.rejects(client.push(kind, { n: 6 }, { uniqueKey: "u", uniqueMode: "reject" }), UniqueKeyHeld);
});

test("push middleware may refuse, or answer by itself without a server", async () => {
  const kept: Outgoing[] = [];
  const keep: PushMiddleware = async (jobs) => {
    kept.push(...jobs);
    return jobs.map(() => ({ id: 0n, outcome: "created", ackLevel: "memory" }));
  };
  await using alone = new Client({ target: "127.0.0.1:1", middleware: [keep] });
  assert.equal((await alone.push("mail", { to: "a@b.c" })).ackLevel, "memory");
  await alone.batchOf(7n).push("mail", 2);
  await alone.entity("account", "42").push("deposit", 3);
  assert.deepEqual(
    kept.map((job) => [job.queue, text(job), job.options.batchId, job.options.group]),
    [
      ["mail", '{"to":"a@b.c"}', undefined, undefined],
      ["mail", "2", 7n, undefined],
      ["account", "3", undefined, "42"],
    ],
  );
  const refuse: PushMiddleware = async () => {
    throw new TypeError("not today");
  };
  await using refused = clientOf(server, { middleware: [refuse] });
  await assert.rejects(refused.push("q", 1), TypeError);
});

test("what middleware may not do is refused before anything is sent", async () => {
  const wrong: [PushMiddleware, RegExp][] = [
    [async (jobs, next) => next([...jobs, ...jobs]), /made 4 jobs of 2/],
    [async (jobs, next) => next(jobs.map((job, n) => ({ ...job, queue: `q${n}` }))), /several queues/],
    [async (jobs, next) => (await next(jobs)).slice(1), /1 outcomes of 2/],
  ];
  for (const [middleware, message] of wrong.slice(0, 2)) {
    await using client = clientOf(server, { middleware: [middleware] });
    await assert.rejects(client.pushMany("wrong", [1, 2]), { message, name: "InvalidArgument" });
  }
  await using plain = clientOf(server);
  const { jobs } = await plain.admin.jobs.listJobs({ filter: { queue: "wrong" } });
  assert.equal(jobs.length, 0);
  await using client = clientOf(server, { middleware: wrong.slice(2).map(([one]) => one) });
  await assert.rejects(client.pushMany("wrong", [1, 2]), /1 outcomes of 2/);
  await assert.rejects(client.push("wrong", 1, { delaay: "1h" } as never), InvalidArgument);
});
