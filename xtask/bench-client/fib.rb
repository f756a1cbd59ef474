# fib(37), and the seconds that it takes, for `tokaido run` and for mruby.
def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

start = Time.now
raise "wrong" unless fib(37) == 24_157_817
puts Time.now - start
