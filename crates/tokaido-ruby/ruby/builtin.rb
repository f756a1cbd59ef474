# Replacements for some of mruby's own methods: safer, or closer to Ruby's.

class Array
  # Sorting works directly on the array's memory, which the block could free by changing the array.
  # So this sorts a copy that nothing else refers to.
  in_place = instance_method(:sort!)

  define_method(:sort!) do |&block|
    replace(in_place.bind(dup).call(&block))
  end
end

module Kernel
  as_format = instance_method(:format)

  # Works on a copy of the text, since the `to_s` of an argument could change the text itself. The
  # copy has memory of its own, so that nothing follows its end.
  define_method(:format) do |text, *arguments|
    as_format.bind(self).call("" + text, *arguments)
  end

  define_method(:sprintf) do |text, *arguments|
    as_format.bind(self).call("" + text, *arguments)
  end
end

class String
  def %(arguments)
    arguments.is_a?(Array) ? format(self, *arguments) : format(self, arguments)
  end
end

# Random numbers below a limit of more than 32 bits take two draws: mruby's own would divide by zero.
module Tokaido
  module Wide
    LIMIT = 1 << 31

    def rand(max = 0)
      case max
      when Integer
        return super unless max.abs > LIMIT
        (super(LIMIT) << 31 | super(LIMIT)) % max.abs
      when Range
        first, last = max.begin, max.end
        return super unless first.is_a?(Integer) && last.is_a?(Integer)
        count = last - first + (max.exclude_end? ? 0 : 1)
        raise ArgumentError, "a range without numbers: #{max.inspect}" unless count > 0
        first + rand(count)
      else super
      end
    end
  end
end

class Random
  prepend Tokaido::Wide

  class << self
    prepend Tokaido::Wide
  end
end

module Kernel
  def rand(max = 0)
    Random.rand(max)
  end
end

class Integer
  def pred = self - 1

  def gcd(other)
    a, b = abs, other.abs
    a, b = b, a % b until b == 0
    a
  end

  def lcm(other) = self == 0 || other == 0 ? 0 : (self / gcd(other) * other).abs

  # The bit at index `place`.
  def [](place) = place < 0 ? 0 : place > 63 ? (self < 0 ? 1 : 0) : self >> place & 1

  # The digits, lowest first.
  def digits(base = 10)
    raise ArgumentError, "a base is at least 2, this is #{base}" if base < 2
    raise ArgumentError, "a number below 0 has no digits" if self < 0
    number, digits = self, []
    loop do
      digits << number % base
      number /= base
      return digits if number == 0
    end
  end
end

class Range
  # Every `by`-th value of a numeric range.
  def step(by = 1)
    return to_enum(:step, by) unless block_given?
    raise ArgumentError, "a step is more than 0, this is #{by}" unless by > 0
    value, turn = self.begin, 0
    while self.end.nil? || value < self.end || value == self.end && !exclude_end?
      yield value
      turn += 1
      value = self.begin + turn * by
    end
    self
  end

  alias % step
end

class Hash
  alias __to_h to_h

  # Like Ruby's, accepts a block that returns pairs.
  def to_h(&block)
    block ? to_a.to_h(&block) : __to_h
  end
end

module Enumerable
  alias __max_by max_by
  alias __min_by min_by
  alias __max max
  alias __min min

  # With a number: that many of the largest, in descending order.
  def max_by(count = nil, &block)
    return __max_by(&block) unless count
    block ? sort_by(&block).reverse.first(count) : to_enum(:max_by, count)
  end

  # With a number: that many of the smallest, in ascending order.
  def min_by(count = nil, &block)
    return __min_by(&block) unless count
    block ? sort_by(&block).first(count) : to_enum(:min_by, count)
  end

  def max(count = nil, &block)
    count ? sort(&block).reverse.first(count) : __max(&block)
  end

  def min(count = nil, &block)
    count ? sort(&block).first(count) : __min(&block)
  end
end
