"""Users, and commands to try with them, for the ACL tests."""

# Separated by `;` or a line end. `K` is a key, `L` another one, `C` a channel.
COMMANDS = """
get K; set K v; set K v GET; set K v EX 10; getdel K; getex K; getset K v; append K v; strlen K; incr K; incrby K 1
incrbyfloat K 1; decr K; mget K L; mset K v L v; msetnx K v L v; setnx K v; setex K 1 v; psetex K 1 v; setrange K 0 v
getrange K 0 1; substr K 0 1; lcs K L; setbit K 0 1; getbit K 0; bitcount K; bitpos K 1; bitop and K L L
bitfield K get u8 0; bitfield K set u8 0 1; bitfield_ro K get u8 0
del K; del K L; unlink K; exists K; exists K L; type K; touch K; expire K 1; pexpire K 1; expireat K 1; pexpireat K 1
persist K; ttl K; pttl K; expiretime K; rename K L; renamenx K L; copy K L; move K 1; dump K; restore K 0 x; randomkey
keys *; scan 0; dbsize; object encoding K; object freq K; object idletime K; object refcount K; object help
sort K; sort K STORE L; sort_ro K; sort K BY w_* GET x_*; sort K LIMIT 0 1 STORE L
hset K f v; hmset K f v; hget K f; hmget K f; hgetall K; hdel K f; hexists K f; hkeys K; hvals K; hlen K; hstrlen K f
hincrby K f 1; hincrbyfloat K f 1; hrandfield K; hscan K 0; hsetnx K f v
lpush K v; rpush K v; lpushx K v; rpushx K v; lpop K; rpop K; llen K; lrange K 0 1; lindex K 0; linsert K before a b
lset K 0 v; lrem K 0 v; ltrim K 0 1; lpos K v; lmove K L left right; rpoplpush K L; lmpop 2 K L left
blpop K L 1; brpop K 1; blmove K L left right 1; brpoplpush K L 1; blmpop 1 2 K L left
sadd K m; srem K m; smembers K; sismember K m; smismember K m; scard K; spop K; srandmember K; smove K L m; sscan K 0
sinter K L; sunion K L; sdiff K L; sinterstore K L L; sunionstore K L; sdiffstore K L; sintercard 2 K L
zadd K 1 m; zrem K m; zscore K m; zmscore K m; zcard K; zcount K 0 1; zincrby K 1 m; zrange K 0 1; zrangestore K L 0 1
zrangebyscore K 0 1; zrevrange K 0 1; zrank K m; zrevrank K m; zlexcount K - +; zrangebylex K - +; zremrangebyrank K 0 1
zremrangebyscore K 0 1; zremrangebylex K - +; zpopmin K; zpopmax K; bzpopmin K 1; bzpopmax K L 1; zmpop 1 K min
bzmpop 1 1 K min; zrandmember K; zscan K 0; zunion 2 K L; zinter 2 K L; zdiff 2 K L; zintercard 2 K L
zunionstore K 2 L L; zinterstore K 1 L; zdiffstore K 1 L
xadd K * f v; xlen K; xrange K - +; xrevrange K + -; xdel K 1-1; xtrim K maxlen 1; xread streams K L 0 0
xread count 1 block 1 streams K 0; xreadgroup group g c streams K >; xack K g 1-1; xclaim K g c 0 1-1
xautoclaim K g c 0 0; xpending K g; xgroup create K g 0; xgroup destroy K g; xgroup setid K g 0; xinfo stream K
xinfo groups K; xsetid K 1-1
pfadd K a; pfcount K L; pfmerge K L; geoadd K 1 1 m; geopos K m; geodist K a b; geohash K m
geosearch K frommember m byradius 1 m; geosearchstore K L frommember m byradius 1 m; georadius K 1 1 1 m
georadius K 1 1 1 m store L; georadius_ro K 1 1 1 m; georadiusbymember K m 1 m storedist L
publish C m; spublish C m; subscribe C; psubscribe C; ssubscribe C; unsubscribe C; punsubscribe C; pubsub channels
pubsub numsub C
eval x 1 K; eval x 2 K L a; eval_ro x 1 K; evalsha x 1 K; evalsha_ro x 1 K; fcall f 1 K; fcall_ro f 1 K; eval x 0
script load x; script exists x; script flush; script kill; function list; function stats; function flush; function load x
multi; exec; discard; watch K L; unwatch; ping; echo x; select 1; client id; client list; client kill a; client setname a
client getname; client info; client no-evict on; auth x; hello; reset; quit; command; command count; command info get
config get x; config set a b; config resetstat; config rewrite; info; lastsave; save; bgsave; bgrewriteaof; role
replicaof no one; slowlog get; slowlog len; latency latest; memory usage K; memory stats; memory doctor; monitor
flushall; flushdb; swapdb 0 1; time; wait 0 0; shutdown; acl whoami; acl list; acl setuser x; acl cat; acl genpass
lolwut; cluster info; cluster reset; readonly; readwrite; asking; module list; failover; debug
"""

KEYS = ["a:1", "a:2", "b:1", "b:*", "c", "weather:{x}"]

CHANNELS = ["news", "news.local", "news.*", "sport", "*"]

CATEGORIES = [
    "keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo", "stream",
    "pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting",
]

PATTERNS = ["~a:*", "~b:*", "~*", "%R~a:*", "%W~b:*", "%RW~c", "%R~*", "%W~*", "~a:?", "~[ab]:1", "allkeys", "resetkeys"]

CHANNEL_PATTERNS = ["&news", "&news.*", "&*", "allchannels", "resetchannels", "&s?ort"]

SINGLE = [
    "get", "set", "del", "mget", "config", "config|get", "client", "client|id", "select", "object", "object|encoding",
    "eval", "publish", "subscribe", "psubscribe", "zunionstore", "copy", "sort", "xread", "xinfo|stream", "acl|whoami",
    "flushall", "incr", "exists", "watch", "command|count", "script|load", "function", "memory|usage",
]


def commands():
    """Each command, split into words."""
    texts = COMMANDS.replace("\n", ";").split(";")
    return [text.split() for text in texts if text.strip() and text.strip() != "debug"]


def filled(command, rng):
    """The command with actual keys and channels."""
    places = {"K": KEYS, "L": KEYS, "C": CHANNELS}
    return [rng.choice(places[word]) if word in places else word for word in command]


def rule(rng):
    """One rule of a selector."""
    kind = rng.random()
    if kind < 0.35:
        return rng.choice("+-") + "@" + rng.choice([*CATEGORIES, "all"])
    if kind < 0.6:
        return rng.choice("++-") + rng.choice(SINGLE)
    if kind < 0.7:
        return rng.choice(["+select|1", "+select|0", "allcommands", "nocommands", "+getset|x", "+ECHO|X"])
    return rng.choice(PATTERNS if kind < 0.88 else CHANNEL_PATTERNS)


def rules(rng):
    """The rules of a user. If one cannot follow another, both servers refuse it."""
    made = [rule(rng) for _ in range(rng.randint(1, 7))]
    for _ in range(rng.choice([0, 0, 1, 2])):
        made.append("(" + " ".join(rule(rng) for _ in range(rng.randint(1, 4))) + ")")
    return made
