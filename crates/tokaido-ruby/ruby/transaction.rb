# The transaction that a procedure gets first, its databases, and scans of them.

module Tokaido
  class Transaction
    # The database of that name.
    def [](name)
      Core::DATABASES[name] || open(name)
    end

    alias database []

    # Deletes a database with all its records; returns whether it existed.
    def drop_database(name)
      Core::DATABASES.clear
      Core.drop(name)
    end

    # The time of the transaction, in milliseconds since 1970.
    def now_ms
      Core.now
    end

    def writable?
      Core.writable
    end

    # Runs a Redis command in this transaction: `tx.command(:hset, "h", "field", 1)`.
    def command(*arguments)
      Core.command(arguments)
    end

    # Calls another procedure in this transaction, in any language, and returns its result: `tx.call("shop.buy", "fan")`.
    def call(name, *arguments)
      Core.call_nested(name.to_s, arguments)
    end

    def inspect
      "#<transaction>"
    end

    private

    def open(name)
      database, is_there = Core.open(name)
      database.instance_variable_set(:@name, name.to_s.freeze)
      # One that does not exist yet is looked up again: its number may be given to another one.
      Core::DATABASES[name] = database if is_there
      database
    end
  end

  Record = Struct.new(:value, :flags, :version, :expires_at_ms)

  class Database
    attr_reader :name

    alias exists? key?
    alias include? key?
    alias has_key? key?

    # The value under a key with its flags, version and expiry; nil if there is none.
    def record(key)
      found = __record(key)
      found && Record.new(*found)
    end

    # Puts a value under a key. It expires after `ttl_ms`, or at `expires_at_ms`.
    def put(key, value, ttl_ms: nil, expires_at_ms: nil, flags: 0)
      if ttl_ms || expires_at_ms || flags != 0
        __put_with(key, value, ttl_ms, expires_at_ms, flags, "always")
      else
        __put(key, value)
      end
      value
    end

    # Puts a value unless the key exists; returns whether it was put.
    def add(key, value, ttl_ms: nil, expires_at_ms: nil, flags: 0)
      __put_with(key, value, ttl_ms, expires_at_ms, flags, "absent")
    end

    # Puts a value if the key exists; returns whether it was put.
    def replace(key, value, ttl_ms: nil, expires_at_ms: nil, flags: 0)
      __put_with(key, value, ttl_ms, expires_at_ms, flags, "present")
    end

    # The value under a key, or the result of the block, or the default; without either it raises an error.
    def fetch(key, *default)
      value = get(key)
      return value unless value.nil?
      return yield(key) if block_given?
      raise KeyError, "no record under #{key.inspect}" if default.empty?
      default.first
    end

    # Makes a record expire after `ttl_ms` milliseconds; returns whether it exists.
    def expire(key, ttl_ms)
      raise TypeError, "ttl_ms is a number, this is #{ttl_ms.class}" unless ttl_ms.is_a?(Numeric)
      __expire(key, ttl_ms)
    end

    # Removes the expiry of a record; returns whether the record exists.
    def persist(key)
      __expire(key, nil)
    end

    # Milliseconds until a record expires: nil if there is none, Float::INFINITY if it never does.
    def ttl(key)
      found = __record(key)
      return nil unless found
      at = found[3]
      at ? at - Core.now : Float::INFINITY
    end

    # The number of records, as of the last commit.
    def count
      __statistics[0]
    end

    # Number of bytes of keys and values.
    def size
      __statistics[1]
    end

    # The records in key order: all, those with a prefix, or those in a range.
    def scan(prefix = nil, from: nil, after: nil, to: nil, before: nil, reverse: false, limit: nil)
      Scan.new(self, prefix, from, after, to, before, reverse, limit, false)
    end

    # Like `scan`, but only the keys.
    def keys(prefix = nil, from: nil, after: nil, to: nil, before: nil, reverse: false, limit: nil)
      Scan.new(self, prefix, from, after, to, before, reverse, limit, true)
    end

    # Calls the block with each key and value.
    def each(&block)
      scan.each(&block)
    end

    def inspect
      "#<database #{@name}>"
    end

    alias to_s inspect
  end

  # A scan: an Enumerable of pairs of key and value, or of keys. It keeps nothing open, and resumes
  # after the last key, so that the block may write.
  class Scan
    include Enumerable

    # Number of entries read at a time: at first, and at most.
    PAGE_FIRST = 2
    PAGE_MAX = 64

    def initialize(database, prefix, from, after, to, before, reverse, limit, keys_only)
      raise ArgumentError, "a scan begins at `from:` or behind `after:`" if from && after
      raise ArgumentError, "a scan ends with `to:` or in front of `before:`" if to && before
      raise ArgumentError, "a scan has a prefix or a range" if prefix && (from || after || to || before)
      @database, @prefix, @keys_only, @limit = database, prefix, keys_only, limit
      @low, @low_included = from || after, !after
      @high, @high_included = to || before, !before
      @reverse = reverse ? true : false
    end

    def each
      return to_enum(:each) unless block_given?
      left = @limit
      last = nil
      size = PAGE_FIRST
      loop do
        return self if left && left <= 0
        writes = Core.writes
        page = @database.__page(@prefix, *range_after(last), @reverse, @keys_only, left && left < size ? left : size)
        return self if page.empty?
        taken = 0
        page.each do |entry|
          taken += 1
          last = @keys_only ? entry : entry[0]
          yield entry
          # The block has written, so the rest of the page may be outdated.
          break if writes != Core.writes
        end
        left -= taken if left
        size = writes != Core.writes ? PAGE_FIRST : size * 2
        size = PAGE_MAX if size > PAGE_MAX
      end
    end

    # The same in reverse order.
    def reverse_each(&block)
      copy = dup
      copy.instance_variable_set(:@reverse, !@reverse)
      block ? copy.each(&block) : copy.to_enum(:each)
    end

    def inspect
      "#<scan of #{@database.name}>"
    end

    private

    # The range that remains after the last key.
    def range_after(last)
      return [@low, @low_included, @high, @high_included] unless last
      @reverse ? [@low, @low_included, last, false] : [last, false, @high, @high_included]
    end
  end

  TRANSACTION = Transaction.new.freeze
  Core.prepare(TRANSACTION, Request, Response)
end
