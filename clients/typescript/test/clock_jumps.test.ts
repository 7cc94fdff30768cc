/** A machine whose clock is set an hour ahead or back: calls and waits go by another clock. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { Client, type JoblineError, WaitTimeout } from "@jobline/client";
import { JobState, PushResponseSchema, WaitRequestSchema, WaitResponseSchema } from "@jobline/client/v1";
import { timestampMessage } from "../src/duration.js";
import { goawayPatience } from "../src/stream/received.js";
import { bytesOf, fakeServer } from "./fake_server.js";

const HOUR = 3_600_000;
const trueNow = Date.now;

/** Sets the clock of this machine until the end of the test. */
function set(ahead: number): void {
  Date.now = () => trueNow() + ahead;
}

for (const jump of [HOUR, -HOUR]) {
  test(`the clock is set by ${jump / HOUR} h while a token is asked for`, async (context) => {
    context.after(() => set(0));
    let pushes = 0;
    const target = await fakeServer({
      Push: (_, answer) => {
        pushes += 1;
        answer(null, bytesOf(PushResponseSchema, { firstId: 5n, count: 1 }));
      },
      Wait: (call) => {
        const { ids, timeout } = fromBinary(WaitRequestSchema, call.request);
        if (timeout?.seconds === 0n) return call.end();
        if (!ids.includes(5n)) return undefined;
        return setTimeout(
          () => call.write(bytesOf(WaitResponseSchema, { id: 5n, state: JobState.COMPLETED })),
          50,
        );
      },
    });
    const token = () => {
      set(jump);
      return "t";
    };
    await using client = new Client({ target, token });
    assert.equal((await client.push("q", 1)).id, 5n);
    assert.equal(pushes, 1);
    set(0);
    const began = performance.now();
    const late = client.wait(7n, { timeout: 300 }).catch((error: JoblineError) => error);
    const ended = client.wait(5n, { timeout: "60s" });
    set(jump);
    assert.equal((await ended).state, "completed");
    assert.ok((await late) instanceof WaitTimeout);
    assert.ok(performance.now() - began >= 300);
  });
}

test("a worker whose clock is wrong leaves a stream that is to end neither at once nor never", () => {
  const closeTime = timestampMessage(new Date(1_060_000), "closeTime");
  const stays = (wall: number) => goawayPatience({ closeTime } as never, wall);
  assert.deepEqual(
    [0, HOUR, -HOUR, 40_000].map((ahead) => stays(1_000_000 + ahead)),
    [60_000, 30_000, HOUR, 30_000],
  );
});
