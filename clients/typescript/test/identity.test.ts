/** What a client shows: tokens, TLS, and what of it goes over a network in plaintext. */
import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { inspect } from "node:util";
import { Client, InvalidArgument, type NoToken, Unavailable, Worker } from "@jobline/client";
import { isNear } from "../src/channel.js";
import { Identity, resolved, tokenOf } from "../src/identity.js";
import { Trust } from "../src/tls.js";
import { Guard, keyOf } from "./guarded.js";

const [NEAR, FAR] = ["localhost:7070", "jobs.example:7070"];
const guard = new Guard();
after(() => guard[Symbol.dispose]());

const VARIABLES = ["TOKEN", "TLS", "TLS_CA", "CLIENT_CERTIFICATE", "CLIENT_KEY", "SERVER"];
const clean = () => {
  for (const name of VARIABLES) delete process.env[`JOBLINE_${name}`];
};
clean();
afterEach(clean);

/** Sets variables of the environment until the test is over. */
function set(variables: Record<string, string>): void {
  for (const [name, value] of Object.entries(variables)) process.env[`JOBLINE_${name}`] = value;
}

function pair(name: string) {
  return { certificate: guard.path(`${name}.pem`), key: guard.path(`${name}.key`) };
}

test("which targets are on this host", () => {
  const near = [NEAR, "127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "unix:/run/s", "LOCALHOST:1"];
  for (const target of [...near, "dns:///localhost:1", "ipv4:127.0.0.1:1"]) assert.ok(isNear(target), target);
  const far = [FAR, "10.0.0.1:1", "localhost.evil:1", "127.0.0.1.evil:1", "dns:///jobs:1", "[::2]:1"];
  for (const target of [...far, "ipv4:127.0.0.1:1,10.0.0.1:1"]) assert.ok(!isNear(target), target);
});

test("a token needs TLS to another host, and no error shows it", () => {
  const token = keyOf("secret");
  for (const Kind of [Client, Worker]) {
    assert.throws(
      () => new Kind({ target: FAR, token }),
      (error: InvalidArgument) => {
        assert.ok(error instanceof InvalidArgument);
        assert.ok(!inspect(error).includes(token));
        return (
          error.message ===
          `token: ${FAR} is another host, and without TLS everybody on the way can read a token: ` +
            "give tls: true (JOBLINE_TLS=1), or insecureToken: true"
        );
      },
    );
    assert.throws(() => new Kind({ target: FAR, token: () => token }), /everybody on the way/);
    new Kind({ target: FAR, token, tls: true });
    new Kind({ target: FAR, token, insecureToken: true });
    new Kind({ target: NEAR, token });
  }
});

test("what does not go together is refused", () => {
  const wrong: [object, RegExp][] = [
    [{ token: "" }, /^token: is one word/],
    [{ token: "a b" }, /^token: is one word/],
    [{ token: "a\n" }, /^token: is one word/],
    [{ token: 7 }, /^token: is one word/],
    [{ token: "x", metadata: { Authorization: "y" } }, /^token: metadata has an authorization/],
    [{ metadata: "x" }, /^metadata: is an object/],
    [{ insecureToken: "no" }, /^insecureToken: is true or false/],
    [{ tls: "yes" }, /^tls: is an object/],
    [{ tls: { cert: "a.pem" } }, /^cert: there is no such option/],
    [{ tls: { ca: "" } }, /^tls\.ca: is a text/],
    [{ tls: { certificate: "a.pem" } }, /^tls: a certificate needs its key/],
    [{ tls: { ca: "/none.pem" } }, /^tls: ca: \/none\.pem: no such file or directory$/],
    [{ tls: { ca: guard.path("client.key") } }, /^tls: ca: has no certificates in PEM/],
    [{ tls: { ca: "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----" } }, /damaged ones$/],
    [{ tls: { ...pair("client"), key: guard.path("server.key") } }, /^tls: the key is not that of the/],
    [{ tls: { ...pair("client"), key: guard.path("ca.pem") } }, /^tls: the key cannot be read/],
  ];
  for (const [options, said] of wrong) {
    assert.throws(
      () => new Client(options),
      (error: Error) => error instanceof InvalidArgument && said.test(error.message),
      inspect(options),
    );
  }
});

test("the environment says what options do not", () => {
  const tokenOfNow = (address: object) => resolved(address).token;
  set({ TOKEN: "\n" });
  assert.throws(() => resolved({}), /^InvalidArgument: token: is one word/);
  set({ TOKEN: "jl_y\n" });
  assert.equal(tokenOfNow({}), "jl_y", "the end of a line is no part of it");
  set({ TOKEN: "jl_y" });
  assert.equal(tokenOfNow({}), "jl_y");
  assert.equal(tokenOfNow({ token: "jl_x" }), "jl_x");
  assert.equal(tokenOfNow({ metadata: { authorization: "Bearer z" } }), undefined);
  assert.throws(() => resolved({ target: FAR }), /JOBLINE_TLS=1/);
  // Beside a server: its own certificate turns nothing on for a client.
  process.env.JOBLINE_TLS_CERTIFICATE = "server.pem";
  assert.equal(resolved({}).tls, false);
  delete process.env.JOBLINE_TLS_CERTIFICATE;
  set({ TLS: "1" });
  assert.deepEqual(resolved({ target: FAR }).tls, {});
  assert.equal(resolved({ target: FAR, tls: false, insecureToken: true }).tls, false);
  set({ TLS: "", TLS_CA: guard.path("ca.pem") });
  assert.deepEqual(resolved({ target: FAR }).tls, { ca: guard.path("ca.pem") });
  const { certificate, key } = pair("client");
  set({ CLIENT_CERTIFICATE: certificate, CLIENT_KEY: key });
  assert.deepEqual(resolved({ target: FAR }).tls, { ca: guard.path("ca.pem"), certificate, key });
  for (const off of ["0", "False", "no", "OFF"]) {
    set({ TLS: off });
    assert.equal(resolved({}).tls, false);
  }
  set({ TLS: "" });
  set({ CLIENT_KEY: "" });
  assert.throws(() => resolved({}), /a certificate needs its key/);
  set({ TLS: "perhaps" });
  assert.throws(() => resolved({}), /JOBLINE_TLS: must be 1 or 0/);
});

test("a function returns the token of now, at once or later", async () => {
  const tokens = ["one", "two"];
  const identity = new Identity({ a: "b" }, () => tokens.shift() ?? "");
  assert.equal(identity.fixed, undefined);
  for (const token of ["one", "two"]) {
    assert.deepEqual((await identity.now(1_000)).getMap(), { a: "b", authorization: `Bearer ${token}` });
  }
  await assert.rejects(identity.now(1_000), {
    name: "NoToken",
    message: "the function `token` returned no word of printable ASCII: the call was not sent",
  });
  assert.equal(await tokenOf(async () => "later", 1_000), "later");
});

test("a function that throws, or does not return, is told so; its message is not", async () => {
  const thrown = Object.assign(new TypeError("with jl_secret"), { code: "ENOENT" });
  for (const token of [() => Promise.reject(thrown), () => assert.fail(thrown)]) {
    await assert.rejects(tokenOf(token, 1_000), (error: NoToken) => {
      assert.ok(error instanceof Unavailable && error.definite && error.retryable);
      assert.equal(error.cause, thrown);
      return error.message === "the function `token` threw TypeError (ENOENT): the call was not sent";
    });
  }
  const never = () => new Promise<string>(() => undefined);
  await assert.rejects(tokenOf(never, 20), { message: /has returned none within 0\.0 s/ });
  const ending = new AbortController();
  const waiting = tokenOf(never, 60_000, ending.signal);
  ending.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
});

test("nobody shows a token who looks at a client or a worker", async () => {
  const token = keyOf("secret");
  const pem = "-----BEGIN PRIVATE";
  const metadata = { "x-key": "hidden-as-well" };
  for (const Kind of [Client, Worker]) {
    const one = new Kind({ target: NEAR, token, metadata, tls: pair("client") });
    const whole = inspect(one, { depth: null, showHidden: true, getters: true, maxStringLength: null });
    for (const text of [whole, JSON.stringify(one)]) {
      for (const secret of [token, "hidden-as-well", pem, guard.path("client.key")]) {
        assert.ok(!text.includes(secret), text);
      }
    }
    await (one instanceof Client ? one.close() : one.stop());
  }
});

test("files are read again when they have changed, and not while they do not go together", () => {
  guard.replace("mine", "client");
  const trust = new Trust(pair("mine"));
  const first = trust.current(0);
  assert.equal(trust.current(10_000), first);
  guard.replace("mine", "stranger");
  assert.equal(trust.current(10_001), first, "they are not looked at again at once");
  const second = trust.current(20_000);
  assert.notEqual(second, first);
  assert.equal(trust.current(20_001), second);
  guard.write("mine.key", "half");
  assert.equal(trust.current(30_000), second);
  guard.replace("mine", "client");
  assert.notEqual(trust.current(40_000), second);
});
