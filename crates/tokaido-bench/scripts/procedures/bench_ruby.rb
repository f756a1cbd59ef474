# The procedures and routes of Ruby that `tokaido bench suite` calls, beside those of bench.lua.

class BenchRuby < Tokaido::Procedures
  get("/bench/ruby/hello") { |tx, req, res| "hello, world\n" }

  # Seconds for so many gets of a value of 64 bytes.
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
