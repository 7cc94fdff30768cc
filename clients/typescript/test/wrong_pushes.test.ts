/** What a push says if the server's answer does not fit to it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { Client, Internal, OutcomeUnknown } from "@jobline/client";
import { PushRequestSchema, PushResponseSchema } from "@jobline/client/v1";
import { bytesOf, fakeServer } from "./fake_server.js";

test("a push and a push of many whose answer is of another number of jobs have an unknown outcome", async () => {
  let pushed = 0;
  const target = await fakeServer({
    Push: (call, callback) => {
      pushed = fromBinary(PushRequestSchema, call.request).payloads.length;
      callback(null, bytesOf(PushResponseSchema, { firstId: 1n, count }));
    },
  });
  let count = 0;
  await using client = new Client({ target });
  const isUnknown = (error: unknown) => {
    assert.ok(error instanceof OutcomeUnknown, String(error));
    assert.equal(error.reason, "UNEXPECTED_ANSWER");
    assert.ok(error.cause instanceof Internal);
    return true;
  };
  for (count of [0, 3, -3, 2 ** 31 - 1]) {
    await assert.rejects(client.push("q", "one"), isUnknown);
    await assert.rejects(client.pushMany("q", ["one", "two"]), isUnknown);
    assert.equal(pushed, 2);
  }
});
