// BullMQ against a running server, whose address is in TOKAIDO_ADDRESS (`cargo xtask test node`): a job queue made of
// scripts, over lists, sorted sets, hashes and streams.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { FlowProducer, Queue, QueueEvents, Worker } from "bullmq";

const address = process.env.TOKAIDO_ADDRESS;
assert.ok(address, "TOKAIDO_ADDRESS is not set; run `cargo xtask test node`");
const [host, port] = address.split(":");
// Other tests empty database 0 meanwhile.
const connection = { host, port: Number(port), db: 7 };

describe("BullMQ", () => {
  let queue, events, worker;
  const attempts = new Map();

  before(async () => {
    queue = new Queue("sums", { connection });
    events = new QueueEvents("sums", { connection });
    await Promise.all([queue.waitUntilReady(), events.waitUntilReady()]);
    await queue.obliterate({ force: true });
    const run = async (job) => {
      const tries = (attempts.get(job.id) ?? 0) + 1;
      attempts.set(job.id, tries);
      if (job.name === "fail" || (job.name === "flaky" && tries < 3)) throw new Error(`try ${tries}`);
      if (job.name === "total") return Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 0);
      await job.updateProgress(50);
      await job.log("half");
      return job.data.a + job.data.b;
    };
    worker = new Worker("sums", run, { connection, concurrency: 4 });
    await worker.waitUntilReady();
  });

  after(async () => {
    await worker.close();
    await events.close();
    await queue.obliterate({ force: true });
    await queue.close();
  });

  test("runs jobs and gives their results", async () => {
    const jobs = await queue.addBulk(Array.from({ length: 20 }, (_, a) => ({ name: "add", data: { a, b: 1 } })));
    const sums = await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
    assert.deepEqual(sums, jobs.map((_, a) => a + 1));
    const { logs } = await queue.getJobLogs(jobs[0].id);
    assert.deepEqual(logs, ["half"]);
  });

  test("runs them later, and by their priority", async () => {
    const late = await queue.add("add", { a: 1, b: 1 }, { delay: 100 });
    assert.equal(await late.getState(), "delayed");
    const urgent = await queue.add("add", { a: 2, b: 2 }, { priority: 1 });
    assert.equal(await urgent.waitUntilFinished(events), 4);
    assert.equal(await late.waitUntilFinished(events), 2);
  });

  test("runs again what fails, as often as it may", async () => {
    const options = { attempts: 3, backoff: { type: "fixed", delay: 10 } };
    const flaky = await queue.add("flaky", { a: 3, b: 4 }, options);
    assert.equal(await flaky.waitUntilFinished(events), 7);
    const failing = await queue.add("fail", {}, { attempts: 2 });
    await assert.rejects(failing.waitUntilFinished(events), /try 2/);
    assert.equal(await failing.getState(), "failed");
    assert.equal((await queue.getFailed()).length, 1);
  });

  test("does a job once, whoever asks for it again", async () => {
    const first = await queue.add("add", { a: 1, b: 1 }, { jobId: "once" });
    await first.waitUntilFinished(events);
    await queue.add("add", { a: 5, b: 5 }, { jobId: "once" });
    assert.equal((await queue.getJob("once")).returnvalue, 2);
  });

  test("waits for the jobs that another one is made of", async () => {
    const flows = new FlowProducer({ connection });
    const child = (a) => ({ name: "add", queueName: "sums", data: { a, b: 10 } });
    const flow = await flows.add({ name: "total", queueName: "sums", children: [1, 2, 3].map(child) });
    assert.equal(await flow.job.waitUntilFinished(events), 36);
    await flows.close();
  });

  test("pauses, and counts", async () => {
    await queue.pause();
    await queue.add("add", { a: 0, b: 0 });
    const counts = await queue.getJobCounts("paused", "waiting", "active", "delayed");
    assert.equal(counts.paused + counts.waiting, 1);
    assert.equal(counts.active, 0);
    const done = once(events, "completed");
    await queue.resume();
    await done;
  });
});
