import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Client, type Context, Dead, defineJob, KeyMap, PayloadCodec, type Worker } from "@jobline/client";
import { testJobline } from "@jobline/client/testing";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));

before(() => {
  process.env.JOBLINE_COMMAND ??= join(ROOT, ".venv/bin/jobline");
  assert.ok(existsSync(process.env.JOBLINE_COMMAND), "make setup");
});

interface Mail {
  to: string;
}

const welcome = defineJob<Mail, string>({
  queue: "mail",
  name: "welcome",
  maxAttempts: 2,
  backoff: { base: "1m", jitter: 0 },
});

function sendWelcome({ to }: Mail, context: Context<undefined>): string {
  if (!to.includes("@")) throw new Dead("no address");
  if (to.startsWith("busy") && context.attempt === 1) throw new Error("try later");
  return `sent to ${to}`;
}

const handlers = (worker: Worker) => worker.handle(welcome, sendWelcome);

test("the program under test finds the server, and each test an empty one", async () => {
  const signUp = async (to: string) => {
    await using client = new Client();
    await client.push(welcome, { to }, { jobKey: `welcome-${to}` });
  };
  {
    await using jobline = await testJobline();
    await signUp("a@b.c");
    await signUp("a@b.c");
    const pushed = await jobline
      .assertPushed(welcome, { payloadContains: { to: "a@" }, times: 1 })
      .catch((error: Error) => error.message);
    assert.match(
      String(pushed),
      /0 jobs match, not 1: queue="mail", name="welcome".*\n.*\n {2}\d+ mail\/welcome ready/,
    );
    await jobline.assertPushed(welcome, { payload: { to: "a@b.c" }, times: 1 });
    await assert.rejects(jobline.refutePushed("welcome"), { name: "AssertionError" });
  }
  await using jobline = await testJobline();
  await jobline.refutePushed();
  assert.equal(process.env.JOBLINE_SERVER, jobline.address);
  await assert.rejects(
    jobline.refutePushed("welcome", { nme: "x" } as never),
    /nme: there is no such condition/,
  );
});

test("workOne has one job handled at an attempt, from a checkpoint", async () => {
  await using jobline = await testJobline();
  const first = await jobline.workOne(sendWelcome, { to: "busy@b.c" }, { job: welcome });
  assert.equal(first.state, "scheduled");
  assert.equal((first.runAt?.getTime() ?? 0) - jobline.now.getTime(), 60_000);
  const second = await jobline.workOne(sendWelcome, { to: "busy@b.c" }, { job: welcome, attempt: 2 });
  assert.equal(second.result, "sent to busy@b.c");
  assert.equal((await jobline.workOne(sendWelcome, { to: "nobody" })).state, "dead");
  await assert.rejects(
    jobline.assertPushed(welcome),
    /\n {2}\d+ work-one-\d+\/welcome scheduled \{"to":"busy@b.c"\} Error: "try later"\n[\s\S]* dead \{"to":"nobody"\} Dead: "no address"/,
  );
  await assert.rejects(
    jobline.workOne(sendWelcome, { to: "a" }, { job: welcome, attempt: 3 }),
    /attempt 3 cannot/,
  );

  const count = (upto: number, context: Context<undefined>) => {
    const { at } = context.checkpoint<{ at: number }>() ?? { at: 0 };
    return Array.from({ length: upto - at }, (_, index) => at + index);
  };
  for (const attempt of [1, 2]) {
    const job = await jobline.workOne(count, 5, { attempt, checkpoint: { at: 3 } });
    assert.deepEqual([job.result, job.checkpoint], [[3, 4], { at: 3 }]);
  }
});

test("workers of the test are waited for; drain and waitFor say what is left", async () => {
  await using jobline = await testJobline();
  await jobline.startWorker(handlers);
  const { id } = await jobline.client.push(welcome, { to: "busy@b.c" }, { delay: "1h" });
  await jobline.advance("2h");
  const [job] = await jobline.waitFor({ queue: "mail" }, "completed");
  assert.deepEqual([job?.id, job?.failed], [id, 1]);
  await jobline.drain();
  await assert.rejects(jobline.waitFor(welcome, "dead", { timeout: "10ms" }), {
    name: "AssertionError",
    message: /completed/i,
  });
  await jobline.client.push("nobody", 1);
  await assert.rejects(jobline.drain(undefined, { timeout: "10ms" }), {
    name: "AssertionError",
    message: /nobody/,
  });
});

test("what the program seals, its codec opens for assertions", async () => {
  const keys = new KeyMap({ k: Buffer.alloc(32, 1) }, () => "k");
  const codec = new PayloadCodec({ keys });
  await using jobline = await testJobline({ codec });
  await using client = new Client({ codec });
  await client.push(welcome, { to: "a@b.c" });
  await jobline.drain(handlers);
  const sent = await jobline.assertPushed(welcome, { payload: { to: "a@b.c" } });
  assert.equal(sent.result, "sent to a@b.c");
  const again = await jobline.workOne((_, context) => context.checkpoint(), 1, { checkpoint: { at: 3 } });
  assert.deepEqual(again.result, { at: 3 });
});

test("tests that run at the same time have a server each", async () => {
  await using one = await testJobline();
  await using other = await testJobline();
  await one.client.push("a", 1);
  await other.refutePushed(undefined, { queue: "a" });
  await one.assertPushed(undefined, { queue: "a" });
  await assert.rejects(one.assertPushed("a", { times: 0 }), /refutePushed says/);
  assert.notEqual(one.address, other.address);
});

test("a server that a test has killed is not handed to the next", async () => {
  const directory = mkdtempSync(join(tmpdir(), "jobline-ts-kit-"));
  after(() => rmSync(directory, { recursive: true }));
  const [command, pid] = [join(directory, "jobline"), join(directory, "pid")];
  const script = `#!/bin/sh\necho $$ > "${pid}"\nexec "${process.env.JOBLINE_COMMAND}" "$@"\n`;
  writeFileSync(command, script, { mode: 0o755 });
  const serverBefore = process.env.JOBLINE_SERVER;
  {
    await using _ = await testJobline({ command });
    process.kill(Number(readFileSync(pid, "utf8")), "SIGKILL");
  }
  {
    await using jobline = await testJobline({ command });
    await jobline.client.push("a", 1);
    await jobline.assertPushed(undefined, { queue: "a", times: 1 });
  }
  assert.equal(process.env.JOBLINE_SERVER, serverBefore);
});

test("a command that is missing, or no server, says what to install", async () => {
  const missing = testJobline({ command: "no-such-jobline" });
  await assert.rejects(
    missing,
    /^Error: `no-such-jobline dev` did not start: there is no such command\. Install it in a checkout of Jobline: `pip install '\.\/clients\/python\[cli\]' '\.\[native\]'`/,
  );
  await assert.rejects(
    testJobline({ command: "false" }),
    /^Error: `false dev` did not start: it ended with code 1\. Is it the command of Jobline.*JOBLINE_COMMAND\.$/,
  );
  await assert.rejects(testJobline({ command: ROOT }), /did not start: it may not be run\. Is it/);
});

test("a wait ends at once when its time is over by the clock that the test moves", async () => {
  await using jobline = await testJobline();
  await using other = await testJobline();
  await using client = new Client({ target: jobline.address }); // of the program under test
  const slow = { delay: "1h" };
  const { id } = await client.push("slow", 1, slow);
  const wait = assert.rejects(client.wait(id, { timeout: "10m" }), { name: "WaitTimeout", id });
  const result = jobline.client.pushAndWait(welcome, { to: "a@b.c" }, { timeout: "10m" });
  const going = other.client.wait((await other.client.push("slow", 1, slow)).id, { timeout: "10m" });
  await jobline.advance("9m");
  await jobline.drain(handlers);
  assert.equal(await result, "sent to a@b.c");
  await jobline.advance("61s");
  await wait;
  await other.client.admin.jobs.cancelJobs({ jobs: { all: true } });
  assert.equal((await going).state, "cancelled", "another server's clock has not moved");
});

test("assertions do not read more of a server's jobs than they need", async () => {
  await using jobline = await testJobline();
  await jobline.client.pushMany(
    "many",
    Array.from({ length: 10_000 }, (_, n) => n),
  );
  const { jobs } = jobline.client.admin;
  const pages: number[] = [];
  const list = jobs.listJobs;
  Object.assign(jobs, {
    listJobs: async (...given: Parameters<typeof list>) => {
      const page = await list(...given);
      pages.push(page.jobs.length);
      return page;
    },
  });
  await jobline.assertPushed(undefined, { queue: "many" });
  assert.deepEqual(pages.splice(0), [1]);
  await assert.rejects(
    jobline.assertPushed(undefined, { queue: "many", times: 2 }),
    /3 jobs match, or more, not 2/,
  );
  assert.deepEqual(pages.splice(0), [3]);
  await assert.rejects(jobline.refutePushed(), /^AssertionError.*jobs match: any\n[\s\S]*\n {2}and more$/);
  assert.deepEqual(pages.splice(0), [21]);
  await jobline.refutePushed("none");
  assert.deepEqual(pages.splice(0), [0]);
  assert.equal((await jobline.pushed()).length, 10_000);
  assert.ok(pages.length <= 11, `${pages.length} pages`);
});
