/** What a wait does if the server breaks its protocol: no hot loop, and no untrue error. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { Client, Internal, type JobEnd, PermissionDenied, WaitTimeout } from "@jobline/client";
import { JobState, WaitRequestSchema, WaitResponseSchema } from "@jobline/client/v1";
import { type Answers, bytesOf, fakeServer } from "./fake_server.js";

/** Returns a client of a server whose calls of Wait are answered by these in turn, the last again and again. */
async function waiting(...ends: MessageInitShape<typeof WaitResponseSchema>[][]) {
  const timeouts: unknown[] = [];
  const answers: Answers = {
    Wait: (call) => {
      const index = Math.min(timeouts.length, ends.length - 1);
      timeouts.push(fromBinary(WaitRequestSchema, call.request).timeout);
      for (const end of ends[index] ?? []) call.write(bytesOf(WaitResponseSchema, end));
      call.end();
    },
  };
  return { client: new Client({ target: await fakeServer(answers) }), calls: timeouts };
}

test("a wait that the server ends too early goes on", async () => {
  const { client, calls } = await waiting([], [], [{ id: 5n, state: JobState.COMPLETED }]);
  const end: JobEnd = await client.wait(5n, { timeout: "30s" });
  assert.equal(end.state, "completed");
  assert.equal(calls.length, 3);
  await client.close();
});

test("a job that has not ended is said to be so when the time is over, and not before", async () => {
  const { client, calls } = await waiting([]);
  const began = performance.now();
  await assert.rejects(client.wait(5n, { timeout: 300 }), WaitTimeout);
  assert.ok(performance.now() - began >= 300);
  assert.ok(calls.length < 10, `${calls.length} calls`);
  await client.close();
});

for (const [what, end] of Object.entries({
  "an end of another job": { id: 6n, state: JobState.COMPLETED },
  "a state that is no end": { id: 5n, state: JobState.ACTIVE },
  "an unknown state": { id: 5n, state: 99 as JobState },
  "no state at all": { id: 5n },
})) {
  test(`${what} is no answer to a wait`, async () => {
    const { client } = await waiting([end]);
    await assert.rejects(client.wait(5n, { timeout: "30s" }), (error) => {
      assert.ok(error instanceof Internal);
      assert.equal(error.reason, "UNEXPECTED_ANSWER");
      return true;
    });
    await client.close();
  });
}

test("a result that the caller may not see is not taken for none", async () => {
  const { client } = await waiting([{ id: 5n, state: JobState.COMPLETED, resultHidden: true }]);
  await assert.rejects(client.result("kind", 5n), (error) => {
    assert.ok(error instanceof PermissionDenied);
    assert.match(error.message, /^the result of job 5 needs the verb read_payload/);
    return true;
  });
  assert.equal((await client.wait(5n)).resultHidden, true);
  await client.close();
});
