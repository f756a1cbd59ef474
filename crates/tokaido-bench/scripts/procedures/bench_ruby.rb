# The Ruby procedures and routes that `tokaido bench suite` calls, besides those of bench.lua.

class BenchRuby < Tokaido::Procedures
  get("/bench/ruby/hello") { |tx, req, res| "hello, world\n" }

  # The seconds that this many gets of a value of 64 bytes take.
  write def timed_gets(tx, count)
    count = count.to_i
    db = tx[:main]
    db["a"] = "x" * 64
    start = Time.now
    n = 0
    while n < count
      db.get("a")
      n += 1
    end
    Time.now - start
  end
end
