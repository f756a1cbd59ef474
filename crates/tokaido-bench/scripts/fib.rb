# fib(n) by recursion, and the seconds that it takes: for `tokaido run`, ruby and mruby.
def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

start = Time.now
result = fib((ARGV[0] || 37).to_i)
seconds = Time.now - start
puts "#{result} #{seconds}"
