// memjs, which speaks memcached's binary protocol, against a running server, whose address is in TOKAIDO_ADDRESS
// (`cargo xtask test node`).

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import memjs from "memjs";

const address = process.env.TOKAIDO_ADDRESS;
assert.ok(address, "TOKAIDO_ADDRESS is not set; run `cargo xtask test node`");

describe("memjs", () => {
  let client;
  before(() => { client = memjs.Client.create(address, { retries: 0, timeout: 10 }); });
  beforeEach(() => client.flush());
  after(() => client.close());

  async function text(key) {
    const { value } = await client.get(key);
    return value?.toString();
  }

  test("gets what it set", async () => {
    assert.equal(await client.set("station", "日本橋"), true);
    assert.equal(await text("station"), "日本橋");
    assert.equal((await client.get("nothing")).value, null);
  });

  test("takes any bytes", async () => {
    const bytes = Buffer.from(Array.from({ length: 1 << 19 }, (_, i) => i % 256));
    assert.equal(await client.set("bytes", bytes), true);
    assert.deepEqual((await client.get("bytes")).value, bytes);
  });

  test("refuses a value that is too large, and goes on", async () => {
    await assert.rejects(client.set("large", Buffer.alloc((1 << 20) + 1)));
    assert.equal(await client.set("large", "small"), true);
  });

  test("adds, replaces and deletes by what is there", async () => {
    assert.equal(await client.replace("k", "0"), false);
    assert.equal(await client.add("k", "1"), true);
    assert.equal(await client.add("k", "2"), false);
    assert.equal(await client.replace("k", "3"), true);
    assert.equal(await client.append("k", "4"), true);
    assert.equal(await text("k"), "34");
    assert.equal(await client.delete("k"), true);
    assert.equal(await client.delete("k"), false);
  });

  test("counts", async () => {
    assert.equal((await client.increment("n", 5, { initial: 10 })).value, 10);
    assert.equal((await client.increment("n", 5, {})).value, 15);
    assert.equal((await client.decrement("n", 100, {})).value, 0);
  });

  test("keeps the order of what it sends without waiting", async () => {
    const counts = await Promise.all(
      Array.from({ length: 1000 }, () => client.increment("n", 1, { initial: 0 })),
    );
    assert.deepEqual(counts.map(({ value }) => value), Array.from({ length: 1000 }, (_, i) => i));
  });

  test("gives an expiry", async () => {
    assert.equal(await client.set("k", "v", { expires: 1 }), true);
    assert.equal(await client.touch("k", 100), true);
    assert.equal(await client.touch("nothing", 100), false);
  });

  test("reads figures", async () => {
    const stats = await new Promise((resolve, reject) => {
      client.stats((error, _server, stats) => (error ? reject(error) : resolve(stats)));
    });
    assert.equal(stats.version, "1.6.18");
  });
});
