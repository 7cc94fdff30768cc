// Puts one load on a server, with the flags and the report of ../go/main.go.

import { parseArgs } from "node:util";
import { run } from "./load.js";

// Each client is loaded only where it is asked for: one of them needs Bun.
const PEERS = { bullmq: "./bullmq.js", bunqueue: "./bunqueue.js" };
const STRINGS = ["peer", "address", "queue", "variant", "load", "seconds", "jobs"];

// Flags have one dash, as Go's.
const args = process.argv.slice(2).map((word) => word.replace(/^-(?=[a-z])/, "--"));
const options = Object.fromEntries(STRINGS.map((name) => [name, { type: "string", default: "" }]));
const { values } = parseArgs({ args, options });
const { open } = await import(PEERS[values.peer]);
const [host, port] = values.address.split(":");
const peer = await open({ ...values, host, port: Number(port) });
const report = await run(peer, {
  load: values.load,
  seconds: Number(values.seconds || 1),
  jobs: Number(values.jobs || 0),
});
console.log(JSON.stringify(report));
process.exit(0); // connections would keep it
