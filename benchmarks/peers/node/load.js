// The four loads, the same as in ../go/main.go, for peers whose clients are written in JavaScript.
//
// A peer has push(), bulk(count), waiting() and drain(count); each returns when the server has answered.

const CALLERS = { single: 1, many: 64, bulk: 4 };
const BATCH = 1000;

export const payload = "abcdefghij".repeat(10);

/** Runs a load; returns what is printed. */
export async function run(peer, { load, seconds, jobs }) {
  if (load === "drain") {
    await push(peer, "bulk", { jobs });
    const before = await peer.waiting();
    const began = performance.now();
    await peer.drain(jobs);
    // Acks may be under way.
    while ((await peer.waiting()) > 0) await new Promise((resolve) => setTimeout(resolve, 1));
    return { jobs, seconds: (performance.now() - began) / 1000, counted: before };
  }
  // A push of each caller is not timed: it opens connections, or has memory grow.
  const warming = jobs ? 0 : CALLERS[load] * (load === "bulk" ? BATCH : 1);
  if (warming) await push(peer, load, { jobs: warming });
  const done = await push(peer, load, { seconds, jobs });
  return { ...done, counted: (await peer.waiting()) - warming };
}

async function push(peer, load, { seconds, jobs }) {
  const batch = load === "bulk" ? BATCH : 1;
  let begun = 0;
  let pushed = 0;
  const began = performance.now();
  const end = began + seconds * 1000;
  const goesOn = () => (jobs ? begun < jobs : performance.now() < end);
  const caller = async () => {
    while (goesOn()) {
      begun += batch;
      await (batch === 1 ? peer.push() : peer.bulk(batch));
      pushed += batch;
    }
  };
  await Promise.all(Array.from({ length: CALLERS[load] }, caller));
  return { jobs: pushed, seconds: (performance.now() - began) / 1000 };
}

/** Counts handled jobs; `over` resolves when there were so many. */
export function countdown(jobs) {
  let done;
  const over = new Promise((resolve) => {
    done = resolve;
  });
  let left = jobs;
  const tick = () => {
    left -= 1;
    if (left === 0) done();
  };
  return { tick, over };
}
