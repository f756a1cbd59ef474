import io.lettuce.core.ClientOptions;
import io.lettuce.core.KeyValue;
import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.ScoredValue;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.StreamMessage;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.XReadArgs;
import io.lettuce.core.Consumer;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.CacheFrontend;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Lettuce against a running server: many commands on one connection at a time, with both versions of the protocol. */
final class LettuceTest {
    private final RedisClient client;
    private final ProtocolVersion protocol;

    private LettuceTest(ProtocolVersion protocol) {
        String[] address = Check.address();
        this.protocol = protocol;
        client = RedisClient.create(RedisURI.create(address[0], Integer.parseInt(address[1])));
        client.setOptions(ClientOptions.builder().protocolVersion(protocol).autoReconnect(false).build());
    }

    public static void main(String[] arguments) {
        Check check = new Check();
        for (ProtocolVersion protocol : ProtocolVersion.values()) {
            LettuceTest tests = new LettuceTest(protocol);
            String with = "lettuce, " + protocol + ": ";
            check.add(with + "what was set is got", tests::values);
            check.add(with + "ten thousand commands on their way", tests::many);
            check.add(with + "transactions", tests::transactions);
            check.add(with + "collections", tests::collections);
            check.add(with + "a stream and its group", tests::streams);
            check.add(with + "scripts", tests::scripts);
            check.add(with + "a scan meets each key", tests::scan);
            check.add(with + "publish and subscribe", tests::publishing);
            check.add(with + "a pop that waits", tests::blocking);
            check.add(with + "errors", tests::errors);
            if (protocol == ProtocolVersion.RESP3) {
                check.add(with + "a cache in the client is told of changes", tests::caching);
            }
        }
        check.run();
    }

    private StatefulRedisConnection<String, String> connect() {
        var connection = client.connect();
        connection.sync().flushdb();
        return connection;
    }

    private void values() {
        try (var connection = connect()) {
            RedisCommands<String, String> redis = connection.sync();
            Check.same("SET", redis.set("k", "日本橋", SetArgs.Builder.ex(60)), "OK");
            Check.same("GET", redis.get("k"), "日本橋");
            Check.same("absent", redis.get("nothing"), null);
            Check.same("SET NX", redis.set("k", "x", SetArgs.Builder.nx()), null);
            Check.same("SET GET", redis.setGet("k", "1"), "日本橋");
            Check.same("INCR", redis.incr("k"), 2L);
            Check.same("TYPE", redis.type("k"), "string");
            Check.same("MGET", redis.mget("k", "nothing"),
                List.of(KeyValue.just("k", "2"), KeyValue.<String, String>empty("nothing")));
        }
    }

    private void many() {
        try (var connection = connect()) {
            var redis = connection.async();
            var replies = new ArrayList<RedisFuture<Long>>();
            for (int n = 0; n < 10_000; n++) {
                replies.add(redis.incr("n"));
            }
            var all = replies.toArray(new RedisFuture<?>[0]);
            Check.same("all come", LettuceFutures.awaitAll(Duration.ofSeconds(30), all), true);
            for (int n = 0; n < 10_000; n++) {
                Check.same("reply " + n, replies.get(n).toCompletableFuture().join(), n + 1L);
            }
        }
    }

    private void transactions() {
        try (var connection = connect(); var other = client.connect()) {
            var redis = connection.sync();
            redis.multi();
            redis.incr("n");
            redis.rpush("l", "a");
            var done = redis.exec();
            Check.same("EXEC", List.of(done.<Long>get(0), done.<Long>get(1)), List.of(1L, 1L));
            redis.watch("n");
            other.sync().incr("n");
            redis.multi();
            redis.set("n", "lost");
            Check.same("given up", redis.exec().wasDiscarded(), true);
            Check.same("n", redis.get("n"), "2");
        }
    }

    private void collections() {
        try (var connection = connect()) {
            var redis = connection.sync();
            redis.hset("h", Map.of("a", "1", "b", "2"));
            Check.same("HGETALL", redis.hgetall("h"), Map.of("a", "1", "b", "2"));
            redis.sadd("s", "x", "y");
            Check.same("SMEMBERS", redis.smembers("s"), Set.of("x", "y"));
            redis.zadd("z", 1.5, "low");
            redis.zadd("z", 1e300, "high");
            Check.same("ZRANGE", redis.zrangeWithScores("z", 0, -1),
                List.of(ScoredValue.just(1.5, "low"), ScoredValue.just(1e300, "high")));
            redis.rpush("l", "1", "2", "3");
            Check.same("LRANGE", redis.lrange("l", 1, -1), List.of("2", "3"));
            Check.same("GEODIST", redis.geoadd("g", 139.77, 35.68, "a"), 1L);
        }
    }

    private void streams() {
        try (var connection = connect()) {
            var redis = connection.sync();
            String id = redis.xadd("x", Map.of("to", "kyoto"));
            redis.xgroupCreate(XReadArgs.StreamOffset.from("x", "0"), "g");
            List<StreamMessage<String, String>> read =
                redis.xreadgroup(Consumer.from("g", "c"), XReadArgs.StreamOffset.lastConsumed("x"));
            Check.same("the entry", read.get(0).getBody(), Map.of("to", "kyoto"));
            Check.same("XPENDING", redis.xpending("x", "g").getCount(), 1L);
            Check.same("XACK", redis.xack("x", "g", id), 1L);
        }
    }

    private void scripts() {
        try (var connection = connect()) {
            var redis = connection.sync();
            String[] keys = {"k"};
            String sha = redis.scriptLoad("return redis.call('INCRBY', KEYS[1], ARGV[1])");
            Check.same("EVALSHA", redis.evalsha(sha, ScriptOutputType.INTEGER, keys, "5"), 5L);
            Check.same("EVAL", redis.eval("return {1, 'two'}", ScriptOutputType.MULTI), List.of(1L, "two"));
            Check.fails("an unknown script", RedisNoScriptException.class, "NOSCRIPT",
                () -> redis.evalsha("0".repeat(40), ScriptOutputType.VALUE));
            redis.functionLoad("#!lua name=lettuce\n"
                + "redis.register_function('lettuce_twice', function(keys, arguments) return arguments[1] * 2 end)",
                true);
            Check.same("FCALL", redis.fcall("lettuce_twice", ScriptOutputType.INTEGER, new String[0], "21"), 42L);
        }
    }

    private void scan() {
        try (var connection = connect()) {
            var redis = connection.sync();
            for (int n = 0; n < 500; n++) {
                redis.set("k" + n, "v");
            }
            var met = new TreeSet<String>();
            ScanIterator<String> keys = ScanIterator.scan(redis, ScanArgs.Builder.limit(50).match("k*"));
            keys.forEachRemaining(met::add);
            Check.same("keys met", met.size(), 500);
        }
    }

    private void publishing() throws Exception {
        var heard = new LinkedBlockingQueue<String>();
        try (var listener = client.connectPubSub(); var speaker = client.connect()) {
            listener.addListener(new RedisPubSubAdapter<>() {
                @Override
                public void message(String pattern, String channel, String message) {
                    heard.add(pattern + " " + channel + ": " + message);
                }
            });
            listener.sync().psubscribe("news.*");
            Check.same("listeners", speaker.sync().publish("news.today", "hello"), 1L);
            Check.same("heard", heard.poll(10, TimeUnit.SECONDS), "news.* news.today: hello");
        }
    }

    private void blocking() {
        try (var connection = connect(); var other = client.connect()) {
            RedisFuture<KeyValue<String, String>> popped = connection.async().blpop(10, "queue");
            other.sync().rpush("queue", "job");
            Check.same("BLPOP", popped.toCompletableFuture().join(), KeyValue.just("queue", "job"));
        }
    }

    private void errors() {
        try (var connection = connect()) {
            var redis = connection.sync();
            redis.set("k", "v");
            Check.fails("another kind", RedisCommandExecutionException.class, "WRONGTYPE", () -> redis.lpush("k", "a"));
            Check.fails("no number", RedisCommandExecutionException.class, "not an integer", () -> redis.incr("k"));
            Check.same("after them", redis.get("k"), "v");
        }
    }

    private void caching() throws Exception {
        try (var connection = connect(); var other = client.connect()) {
            Map<String, String> cached = new ConcurrentHashMap<>();
            CacheFrontend<String, String> cache = ClientSideCaching.enable(CacheAccessor.forMap(cached), connection,
                TrackingArgs.Builder.enabled());
            other.sync().set("k", "old");
            Check.same("from the server", cache.get("k"), "old");
            Check.same("kept", cached.get("k"), "old");
            other.sync().set("k", "new");
            for (int tries = 0; cached.containsKey("k") && tries < 1000; tries++) {
                Thread.sleep(10);
            }
            Check.same("from the server again", cache.get("k"), "new");
        }
    }
}
