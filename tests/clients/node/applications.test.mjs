// Software for Node that is built on Redis, unmodified, against a running server, whose address is in TOKAIDO_ADDRESS
// (`cargo xtask test node`). Each uses a numbered database of its own, since others are emptied meanwhile.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { FlowProducer, Queue, QueueEvents, Worker } from "bullmq";
import { createClient } from "redis";

const address = process.env.TOKAIDO_ADDRESS;
assert.ok(address, "TOKAIDO_ADDRESS is not set; run `cargo xtask test node`");
const [host, port] = address.split(":");

const FINISHED_MS = 30_000;

/** BullMQ keeps jobs in hashes, lists, sorted sets and a stream, which its scripts change together. */
describe("BullMQ", () => {
  const connection = { host, port: Number(port), db: 5, maxRetriesPerRequest: null };
  const failures = new Map();
  let queue, events, worker, ticks = 0;

  async function work(job) {
    await job.log(`has begun ${job.name}`);
    await job.updateProgress(50);
    if (job.name === "tick") ticks += 1;
    const failed = failures.get(job.name) ?? 0;
    if (failed > 0) {
      failures.set(job.name, failed - 1);
      throw new Error("once more");
    }
    return { doubled: job.data * 2 };
  }

  before(async () => {
    queue = new Queue("stations", { connection });
    await queue.obliterate({ force: true });
    events = new QueueEvents("stations", { connection });
    worker = new Worker("stations", work, { connection, concurrency: 4 });
    await Promise.all([events.waitUntilReady(), worker.waitUntilReady()]);
  });
  after(async () => {
    await worker.close();
    await events.close();
    await queue.obliterate({ force: true });
    await queue.close();
  });

  const result = (job) => job.waitUntilFinished(events, FINISHED_MS);

  test("runs jobs, many at once", async () => {
    const jobs = await queue.addBulk(Array.from({ length: 100 }, (_, data) => ({ name: "job", data })));
    const results = await Promise.all(jobs.map(result));
    assert.deepEqual(results, jobs.map((job) => ({ doubled: job.data * 2 })));
    assert.deepEqual(await queue.getJobLogs(jobs[0].id), { logs: ["has begun job"], count: 1 });
  });

  test("runs delayed, urgent and failed jobs", async () => {
    assert.deepEqual(await result(await queue.add("later", 1, { delay: 100 })), { doubled: 2 });
    assert.deepEqual(await result(await queue.add("urgent", 2, { priority: 1 })), { doubled: 4 });
    failures.set("flaky", 2);
    const job = await queue.add("flaky", 3, { attempts: 3, backoff: { type: "exponential", delay: 10 } });
    assert.deepEqual(await result(job), { doubled: 6 });
    failures.set("hopeless", 1);
    await assert.rejects(result(await queue.add("hopeless", 4)), /once more/);
    assert.equal((await queue.getFailed()).length, 1);
  });

  test("knows a job that it has already", async () => {
    const deduplication = { id: "nihonbashi", ttl: 60_000 };
    const [first, second] = [await queue.add("one", 1, { deduplication }), await queue.add("one", 2, { deduplication })];
    assert.equal(first.id, second.id);
    await result(first);
  });

  test("repeats a job until told otherwise", async () => {
    await queue.upsertJobScheduler("clock", { every: 50 }, { name: "tick", data: 0 });
    for (const begun = Date.now(); ticks < 3; await sleep(20)) assert.ok(Date.now() - begun < FINISHED_MS, `${ticks} ticks`);
    assert.ok(await queue.removeJobScheduler("clock"));
  });

  test("runs the children of a job before it", async () => {
    const flow = new FlowProducer({ connection });
    const child = (data) => ({ name: "child", queueName: "stations", data });
    const tree = await flow.add({ name: "parent", queueName: "stations", data: 0, children: [child(1), child(2)] });
    await result(tree.job);
    const values = Object.values(await tree.job.getChildrenValues());
    assert.deepEqual(values.map((value) => value.doubled).sort(), [2, 4]);
    await flow.close();
  });

  test("holds jobs back while it is paused", async () => {
    await queue.pause();
    const job = await queue.add("held", 1);
    await sleep(50);
    assert.equal(await job.isCompleted(), false);
    await queue.resume();
    assert.deepEqual(await result(job), { doubled: 2 });
  });
});

/** node-redis, whose client-side cache relies on invalidations. */
describe("node-redis", () => {
  const connect = async (options = {}) => {
    const client = createClient({ socket: { host, port: Number(port), reconnectStrategy: false }, database: 6, ...options });
    await client.connect();
    return client;
  };

  for (const RESP of [2, 3]) {
    test(`uses every type by version ${RESP} of the protocol`, async () => {
      const client = await connect({ RESP });
      await client.flushDb();
      assert.deepEqual(await client.multi().set("n", "1").incr("n").exec(), ["OK", 2]);
      await client.hSet("hash", { a: "1", b: "2" });
      assert.deepEqual({ ...(await client.hGetAll("hash")) }, { a: "1", b: "2" });
      await client.zAdd("board", [{ score: 1, value: "a" }, { score: 2.5, value: "b" }]);
      assert.deepEqual(await client.zRangeWithScores("board", 1, 1), [{ value: "b", score: 2.5 }]);
      const id = await client.xAdd("stream", "*", { a: "1" });
      const [entry] = await client.xRange("stream", "-", "+");
      assert.deepEqual([entry.id, { ...entry.message }], [id, { a: "1" }]);
      await client.geoAdd("places", { longitude: 139.77, latitude: 35.68, member: "日本橋" });
      const near = await client.geoSearch("places", { longitude: 139.7, latitude: 35.6 }, { radius: 50, unit: "km" });
      assert.deepEqual(near, ["日本橋"]);
      assert.equal(await client.eval("return ARGV[1]", { arguments: ["x"] }), "x");
      const keys = [];
      for await (const some of client.scanIterator()) keys.push(...some);
      assert.deepEqual(keys.sort(), ["board", "hash", "n", "places", "stream"]);
      await client.close();
    });
  }

  test("passes messages on", async () => {
    const [client, subscriber] = [await connect(), await connect()];
    const message = new Promise((arrived) => subscriber.subscribe("news", arrived).then(() => client.publish("news", "hi")));
    assert.equal(await message, "hi");
    await Promise.all([client.close(), subscriber.close()]);
  });

  test("forgets what it has cached once another client changes it", async () => {
    const clientSideCache = { ttl: 0, maxEntries: 0, evictPolicy: "LRU" };
    const [caching, other] = [await connect({ RESP: 3, clientSideCache }), await connect()];
    await other.set("cached", "1");
    assert.equal(await caching.get("cached"), "1");
    await other.set("cached", "2");
    for (const begun = Date.now(); (await caching.get("cached")) !== "2"; await sleep(5)) assert.ok(Date.now() - begun < FINISHED_MS);
    await Promise.all([caching.close(), other.close()]);
  });
});
