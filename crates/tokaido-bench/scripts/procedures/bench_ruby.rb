# The procedures of Ruby that `cargo xtask bench server` calls, beside those of bench.lua.

class BenchRuby < Tokaido::Procedures
  get("/bench/ruby/hello") { |tx, req, res| "hello, world\n" }

  # Seconds that it takes.
  read def timed_fib(tx)
    start = Time.now
    raise "wrong" unless fib(37) == 24_157_817
    Time.now - start
  end

  # 10^7 gets of a value of 64 bytes.
  write def timed_gets(tx)
    db = tx[:main]
    db["a"] = "x" * 64
    start = Time.now
    n = 0
    while n < 10_000_000
      db.get("a")
      n += 1
    end
    Time.now - start
  end

  private

  def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
end
