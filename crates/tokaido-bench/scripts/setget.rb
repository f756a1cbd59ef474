# Sets and gets keys through a Ruby client library: the counterpart of `setget.py`.

HOST = '127.0.0.1'
VALUE = 'x' * 64

def redis_rb(port)
  require 'redis'
  client = Redis.new(host: HOST, port: port)
  [->(key) { client.set(key, VALUE) == 'OK' }, ->(key) { client.get(key) == VALUE }]
end

def dalli(port)
  require 'dalli'
  client = Dalli::Client.new("#{HOST}:#{port}")
  # Raw: the bytes of the value itself, not a dump of a Ruby object.
  [->(key) { client.set(key, VALUE, nil, raw: true) }, ->(key) { client.get(key) == VALUE }]
end

library, port = ARGV
put, get = { 'redis-rb' => method(:redis_rb), 'dalli' => method(:dalli) }.fetch(library).call(port.to_i)
$stdout.sync = true
$stdin.each_line do |line|
  work, count = line.split
  operation = work == 'set' ? put : get
  GC.start
  before = Process.times
  began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  count.to_i.times do |number|
    operation.call(format('key:%012d', number)) or abort("#{work} of a key failed")
  end
  real = Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
  after = Process.times
  puts "#{real} #{after.utime - before.utime} #{after.stime - before.stime}"
end
