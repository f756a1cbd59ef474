import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisNoScriptException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.resps.ScanResult;
import redis.clients.jedis.resps.StreamEntry;
import redis.clients.jedis.resps.Tuple;

/** Jedis against a running server, with both versions of the protocol. */
final class JedisTest {
    private final HostAndPort address;
    private final RedisProtocol protocol;

    private JedisTest(RedisProtocol protocol) {
        String[] address = Check.address();
        this.address = new HostAndPort(address[0], Integer.parseInt(address[1]));
        this.protocol = protocol;
    }

    public static void main(String[] arguments) {
        Check check = new Check();
        for (RedisProtocol protocol : RedisProtocol.values()) {
            JedisTest tests = new JedisTest(protocol);
            String with = "jedis, " + protocol + ": ";
            check.add(with + "what was set is got", tests::values);
            check.add(with + "expiry", tests::expiry);
            check.add(with + "a pipeline of a thousand", tests::pipeline);
            check.add(with + "transactions", tests::transactions);
            check.add(with + "collections", tests::collections);
            check.add(with + "a stream and its group", tests::streams);
            check.add(with + "scripts", tests::scripts);
            check.add(with + "a scan meets each key", tests::scan);
            check.add(with + "publish and subscribe", tests::publishing);
            check.add(with + "a pop that waits", tests::blocking);
            check.add(with + "errors", tests::errors);
        }
        check.run();
    }

    private Jedis connect() {
        var config = DefaultJedisClientConfig.builder().protocol(protocol).clientName("jedis-test");
        Jedis jedis = new Jedis(address, config.build());
        jedis.flushDB();
        return jedis;
    }

    private void values() {
        try (Jedis jedis = connect()) {
            byte[] key = {0, (byte) 0xff, '\r', '\n'};
            byte[] value = "日本橋\0\r\n".getBytes(StandardCharsets.UTF_8);
            Check.same("SET", jedis.set(key, value), "OK");
            Check.same("GET", jedis.get(key), value);
            Check.same("absent", jedis.get("nothing"), null);
            Check.same("SET NX", jedis.set("k", "1", SetParams.setParams().nx()), "OK");
            Check.same("SET NX again", jedis.set("k", "2", SetParams.setParams().nx()), null);
            Check.same("INCRBY", jedis.incrBy("k", 41), 42L);
            Check.same("INCRBYFLOAT", jedis.incrByFloat("f", 2.5), 2.5);
            Check.same("MGET", jedis.mget("k", "nothing"), java.util.Arrays.asList("42", null));
            Check.same("name", jedis.clientGetname(), "jedis-test");
        }
    }

    private void expiry() {
        try (Jedis jedis = connect()) {
            jedis.set("k", "v", SetParams.setParams().px(60_000));
            long left = jedis.pttl("k");
            Check.same("PTTL", left > 0 && left <= 60_000, true);
            Check.same("PERSIST", jedis.persist("k"), 1L);
            Check.same("TTL", jedis.ttl("k"), -1L);
            Check.same("gone", jedis.expireAt("k", 1), 1L);
            Check.same("exists", jedis.exists("k"), false);
        }
    }

    private void pipeline() {
        try (Jedis jedis = connect()) {
            Pipeline pipeline = jedis.pipelined();
            var replies = new ArrayList<redis.clients.jedis.Response<String>>();
            for (int n = 0; n < 1000; n++) {
                pipeline.set("k" + n, "v" + n);
                replies.add(pipeline.get("k" + n));
            }
            pipeline.sync();
            for (int n = 0; n < 1000; n++) {
                Check.same("reply " + n, replies.get(n).get(), "v" + n);
            }
            Check.same("DBSIZE", jedis.dbSize(), 1000L);
        }
    }

    private void transactions() {
        try (Jedis jedis = connect(); Jedis other = connect()) {
            Transaction transaction = jedis.multi();
            transaction.incr("n");
            transaction.lpush("l", "a", "b");
            Check.same("EXEC", transaction.exec(), List.of(1L, 2L));
            jedis.watch("n");
            other.incr("n");
            Transaction late = jedis.multi();
            late.set("n", "lost");
            Check.same("EXEC after a change", late.exec(), null);
            Check.same("n", jedis.get("n"), "2");
        }
    }

    private void collections() {
        try (Jedis jedis = connect()) {
            jedis.hset("h", Map.of("a", "1", "b", "2"));
            Check.same("HGETALL", jedis.hgetAll("h"), Map.of("a", "1", "b", "2"));
            jedis.sadd("s", "x", "y");
            Check.same("SMEMBERS", jedis.smembers("s"), Set.of("x", "y"));
            jedis.zadd("z", Map.of("low", 1.5, "high", 1e300));
            Check.same("ZRANGE", jedis.zrangeWithScores("z", 0, -1),
                List.of(new Tuple("low", 1.5), new Tuple("high", 1e300)));
            Check.same("ZSCORE", jedis.zscore("z", "low"), 1.5);
            jedis.rpush("l", "1", "2", "3");
            Check.same("LRANGE", jedis.lrange("l", 1, -1), List.of("2", "3"));
            jedis.pfadd("p", "a", "b", "c");
            Check.same("PFCOUNT", jedis.pfcount("p"), 3L);
            jedis.geoadd("g", 139.7745, 35.6841, "nihonbashi");
            Check.same("GEOPOS", Math.round(jedis.geopos("g", "nihonbashi").get(0).getLongitude()), 140L);
        }
    }

    private void streams() {
        try (Jedis jedis = connect()) {
            StreamEntryID id = jedis.xadd("x", StreamEntryID.NEW_ENTRY, Map.of("to", "kyoto"));
            jedis.xgroupCreate("x", "g", new StreamEntryID("0-0"), false);
            var read = jedis.xreadGroup("g", "c", XReadGroupParams.xReadGroupParams().count(10),
                Map.of("x", StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY));
            StreamEntry entry = read.get(0).getValue().get(0);
            Check.same("the entry", entry.getFields(), Map.of("to", "kyoto"));
            Check.same("XPENDING", jedis.xpending("x", "g").getTotal(), 1L);
            Check.same("XACK", jedis.xack("x", "g", id), 1L);
            Check.same("XINFO", jedis.xinfoStream("x").getLength(), 1L);
        }
    }

    private void scripts() {
        try (Jedis jedis = connect()) {
            String sha = jedis.scriptLoad("return redis.call('INCRBY', KEYS[1], ARGV[1])");
            Check.same("EVALSHA", jedis.evalsha(sha, List.of("k"), List.of("5")), 5L);
            Check.same("EVAL", jedis.eval("return {1, 'two', {3}}"), List.of(1L, "two", List.of(3L)));
            Check.fails("an unknown script", JedisNoScriptException.class, "NOSCRIPT",
                () -> jedis.evalsha("0".repeat(40)));
            Check.fails("a script's error", JedisDataException.class, "my error",
                () -> jedis.eval("redis.call('SET', KEYS[1], 'x') return redis.error_reply('my error')",
                    List.of("k"), List.of()));
            jedis.functionLoadReplace("#!lua name=jedis\n"
                + "redis.register_function('jedis_twice', function(keys, arguments) return arguments[1] * 2 end)");
            Check.same("FCALL", jedis.fcall("jedis_twice", List.of(), List.of("21")), 42L);
        }
    }

    private void scan() {
        try (Jedis jedis = connect()) {
            Pipeline pipeline = jedis.pipelined();
            for (int n = 0; n < 500; n++) {
                pipeline.set("k" + n, "v");
            }
            pipeline.set("other", "v");
            pipeline.sync();
            var met = new java.util.TreeSet<String>();
            String cursor = ScanParams.SCAN_POINTER_START;
            do {
                ScanResult<String> found = jedis.scan(cursor, new ScanParams().match("k*").count(50));
                met.addAll(found.getResult());
                cursor = found.getCursor();
            } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
            Check.same("keys met", met.size(), 500);
        }
    }

    private void publishing() throws Exception {
        var heard = new LinkedBlockingQueue<String>();
        try (Jedis listener = connect(); Jedis speaker = connect()) {
            JedisPubSub subscription = new JedisPubSub() {
                @Override
                public void onSubscribe(String channel, int count) {
                    heard.add("subscribed to " + channel);
                }

                @Override
                public void onMessage(String channel, String message) {
                    heard.add(channel + ": " + message);
                    unsubscribe();
                }
            };
            Thread thread = new Thread(() -> listener.subscribe(subscription, "news"));
            thread.start();
            Check.same("first", heard.poll(10, TimeUnit.SECONDS), "subscribed to news");
            Check.same("listeners", speaker.publish("news", "hello"), 1L);
            Check.same("then", heard.poll(10, TimeUnit.SECONDS), "news: hello");
            thread.join(10_000);
            Check.same("after it", listener.ping(), "PONG");
        }
    }

    private void blocking() throws Exception {
        try (JedisPooled pool = new JedisPooled(address,
                DefaultJedisClientConfig.builder().protocol(protocol).build())) {
            pool.del("queue");
            Thread thread = new Thread(() -> pool.rpush("queue", "job"));
            thread.start();
            Check.same("BLPOP", pool.blpop(10, "queue"), List.of("queue", "job"));
            thread.join();
            Check.same("nothing comes", pool.blpop(0.01, "queue"), null);
        }
    }

    private void errors() {
        try (Jedis jedis = connect()) {
            jedis.set("k", "v");
            Check.fails("another kind", JedisDataException.class, "WRONGTYPE", () -> jedis.lpush("k", "a"));
            Check.fails("no number", JedisDataException.class, "not an integer", () -> jedis.incr("k"));
            Check.same("after them", jedis.get("k"), "v");
        }
    }
}
