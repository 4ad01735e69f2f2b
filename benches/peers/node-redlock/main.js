// Works with node-redlock as the harness requests: see ../../locks/driver/program.rs.
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { createRequire } from "node:module";
import { Redis } from "ioredis";

// The package does not export its types to ES modules, so it is loaded as CommonJS.
const redlock = createRequire(import.meta.url)("redlock");
const Redlock = redlock.default;

const job = JSON.parse(process.argv[2]);
const clients = job.ports.map((port) => new Redis({ host: "127.0.0.1", port }));
// With the default of 10 tries a waiter gives up. -1 means no limit.
const locks = new Redlock(clients, { retryCount: -1 });
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// Waits for the next line of the harness. Returns false if there is none.
const hear = async () => !(await lines.next()).done;
const pause = () => job.pause_micros && sleep(job.pause_micros / 1000);
const now = () => performance.timeOrigin + performance.now();
const acquire = (name) => locks.acquire([name], job.lease_millis);

async function loop(body) {
  const began = now();
  while (now() - began < job.millis) {
    await body();
  }
}

async function callers(body) {
  await Promise.all(Array.from({ length: job.callers }, (_, caller) => loop(() => body(caller))));
}

const works = {
  async pairs() {
    const began = now();
    let pairs = 0;
    await callers(async (caller) => {
      const lock = await acquire(`${job.names}/${caller}`);
      await lock.release();
      pairs += 1;
    });
    return { pairs, micros: Math.round((now() - began) * 1000) };
  },

  async acquire() {
    const [acquires, releases, pairs] = [[], [], []];
    await loop(async () => {
      const asked = now();
      const lock = await acquire(job.names);
      acquires.push((now() - asked) * 1000);
      await pause();
      const over = now();
      await lock.release();
      releases.push((now() - over) * 1000);
      await pause();
      const again = now();
      await (await acquire(job.names)).release();
      pairs.push((now() - again) * 1000);
      await pause();
    });
    return { acquires, releases, pairs };
  },

  async holds() {
    const holds = [];
    await callers(async () => {
      const lock = await acquire(job.names);
      const from = Math.round(now() * 1000);
      await sleep(job.hold_micros / 1000);
      holds.push([from, Math.round(now() * 1000)]);
      await lock.release();
      await pause();
    });
    return { holds };
  },

  // `using` extends a lock by itself, half a second before its lease ends.
  async keep() {
    const stop = new AbortController();
    const stopped = new Promise((resolve) => stop.signal.addEventListener("abort", resolve));
    const kept = [];
    let held = 0;
    for (let first = 0; first < job.locks; first += 100) {
      const many = Math.min(100, job.locks - first);
      await Promise.all(
        Array.from({ length: many }, (_, at) => {
          const name = `${job.names}/${String(first + at).padStart(20, "0")}`;
          return new Promise((isHeld, fails) => {
            const use = locks.using([name], job.lease_millis, async (signal) => {
              isHeld();
              await stopped;
              if (!signal.aborted) held += 1;
            });
            kept.push(use.catch(fails));
          });
        }),
      );
    }
    console.log("held");
    await hear();
    stop.abort();
    await Promise.all(kept);
    return { held };
  },
};

for (let i = 0; i < 200; i += 1) {
  const lock = await acquire(`warm-up/${process.pid}`);
  await lock.release();
}
console.log("ready");
while (await hear()) console.log(JSON.stringify(await works[job.work]()));
// Connections would keep the process alive.
process.exit(0);
