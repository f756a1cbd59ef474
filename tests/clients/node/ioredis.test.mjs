// ioredis against a running server, whose address is in TOKAIDO_ADDRESS (`cargo xtask test node`).

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import Redis from "ioredis";

const address = process.env.TOKAIDO_ADDRESS;
assert.ok(address, "TOKAIDO_ADDRESS is not set; run `cargo xtask test node`");
const [host, port] = address.split(":");

/** A client without retries, so that a test sees every failure itself. */
function connect(options = {}) {
  return new Redis({ host, port: Number(port), retryStrategy: null, maxRetriesPerRequest: 0, ...options });
}

describe("ioredis", () => {
  let client;
  before(() => { client = connect(); });
  beforeEach(() => client.flushdb());
  after(() => client.quit());

  test("gets what it set", async () => {
    assert.equal(await client.set("station", "日本橋"), "OK");
    assert.equal(await client.get("station"), "日本橋");
    assert.equal(await client.get("nothing"), null);
  });

  test("is a user with rights of its own", async () => {
    await client.call("ACL", "SETUSER", "node", "on", ">sesame", "~mine:*", "+@all", "-@dangerous");
    const user = connect({ username: "node", password: "sesame" });
    try {
      assert.equal(await user.set("mine:1", "v"), "OK");
      assert.equal(await user.call("ACL", "WHOAMI"), "node");
      await assert.rejects(user.get("theirs"), /^ReplyError: NOPERM/);
      await assert.rejects(user.multi().set("mine:1", "w").set("theirs", "x").exec(), /EXECABORT/);
      assert.equal(await user.get("mine:1"), "v");
    } finally {
      user.disconnect();
      await client.call("ACL", "DELUSER", "node");
    }
  });

  test("takes any bytes", async () => {
    const value = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    await client.set(Buffer.from([0, 255, 13, 10]), value);
    assert.deepEqual(await client.getBuffer(Buffer.from([0, 255, 13, 10])), value);
  });

  test("sets with options", async () => {
    assert.equal(await client.set("k", "1", "EX", 100, "NX"), "OK");
    assert.equal(await client.set("k", "2", "NX"), null);
    assert.equal(await client.set("k", "3", "KEEPTTL", "GET"), "1");
    assert.ok((await client.ttl("k")) > 0);
  });

  test("keeps the order of what it sends without waiting", async () => {
    const replies = await Promise.all(
      Array.from({ length: 1000 }, (_, i) => client.incr("n").then((n) => [i, n])),
    );
    for (const [i, n] of replies) assert.equal(n, i + 1);
  });

  test("pipelines, with errors in their place", async () => {
    const replies = await client.pipeline().set("w", "word").incr("w").get("w").exec();
    assert.deepEqual(replies[0], [null, "OK"]);
    assert.match(replies[1][0].message, /not an integer|not a number/);
    assert.deepEqual(replies[2], [null, "word"]);
  });

  test("reads many at once", async () => {
    await client.mset({ a: "1", b: "2" });
    assert.deepEqual(await client.mget("a", "nothing", "b"), ["1", null, "2"]);
  });

  test("hears what others publish", async () => {
    const listener = connect();
    await listener.subscribe("news");
    await listener.psubscribe("n*");
    const heard = [];
    const all = new Promise((resolve) => {
      const hear = (...message) => { if (heard.push(message) === 2) resolve(); };
      listener.on("message", hear);
      listener.on("pmessage", hear);
    });
    assert.equal(await client.publish("news", "日本橋"), 2);
    await all;
    assert.deepEqual(heard, [["news", "日本橋"], ["n*", "news", "日本橋"]]);
    await listener.quit();
  });

  test("waits for an element", async () => {
    const waiting = connect();
    const came = waiting.blpop("queue", 30);
    await client.rpush("queue", "a");
    assert.deepEqual(await came, ["queue", "a"]);
    assert.equal(await waiting.blpop("queue", 0.01), null);
    await waiting.quit();
  });

  test("reads a stream in a group", async () => {
    await client.xgroup("CREATE", "s", "g", "$", "MKSTREAM");
    const other = connect();
    const came = other.xreadgroup("GROUP", "g", "c", "COUNT", 10, "BLOCK", 30_000, "STREAMS", "s", ">");
    const id = await client.xadd("s", "*", "station", "日本橋");
    assert.deepEqual(await came, [["s", [[id, ["station", "日本橋"]]]]]);
    assert.equal((await client.xpending("s", "g"))[0], 1);
    assert.equal(await client.xack("s", "g", id), 1);
    assert.equal(await client.xreadgroup("GROUP", "g", "c", "STREAMS", "s", ">"), null);
    await other.quit();
  });

  test("streams a scan", async () => {
    await client.mset(Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, "x"])));
    const seen = new Set();
    for await (const keys of client.scanStream({ match: "k*", count: 9 })) {
      for (const key of keys) seen.add(key);
    }
    assert.equal(seen.size, 100);
  });

  test("calls procedures", async () => {
    assert.equal(await client.fcall("hits.count", 1, "/index"), 1);
    assert.equal(await client.call("hits.count", "/index"), 2);
    assert.equal(await client.fcall("hits.get", 1, "/index"), "2");
    assert.equal(await client.fcall("values.none", 0), null);
    await assert.rejects(client.fcall("hits.count_and_fail", 1, "/index"), /refused on purpose/);
    assert.equal(await client.fcall("hits.get", 1, "/index"), "2");
  });

  test("selects a database when it connects", async () => {
    const other = connect({ db: 3 });
    await other.set("only", "here");
    assert.equal(await client.get("only"), null);
    assert.equal(await other.get("only"), "here");
    await other.flushdb();
    await other.quit();
  });
});
