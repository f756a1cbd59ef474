# Streams under a key of a database, as handles, and the groups of consumers that share their entries out.

module Tokaido
  # A stream: entries of fields with values, in the order of their ids, which only grow. An id is a time in ms and a
  # number, as "1700000000000-0"; without the number it is the first one of its time. It stays without entries until it is
  # deleted.
  class StoredStream < Collection
    COUNT, LAST_ID, GET, PAGE, ADD, DELETE, TRIM = *0..6

    # Adds an entry behind all others, and gives its id.
    def add(fields, id: nil, max_count: nil, min_id: nil)
      raise ArgumentError, "an entry has one field or more" if fields.empty?
      given = fields.to_h.to_a.flatten(1)
      id = @database.__stream([ADD, @key, id, given])
      trim(max_count: max_count, min_id: min_id) if max_count || min_id
      id
    end

    # The fields of an entry, or nil.
    def get(id) = @database.__stream([GET, @key, id])
    alias [] get
    def size = @database.__stream([COUNT, @key])
    # The largest id that an entry ever had, also one that was deleted; nil if there is no stream.
    def last_id = @database.__stream([LAST_ID, @key])
    # Tells whether there was one.
    def delete(id) = @database.__stream([DELETE, @key, id])

    # Deletes the first entries, until only so many are left, or those before an id; gives how many they were.
    def trim(max_count: nil, min_id: nil)
      all = 0
      while true
        trimmed, is_more = @database.__stream([TRIM, @key, max_count, min_id])
        all += trimmed
        return all unless is_more
      end
    end

    # The entries of a range of ids, as an Enumerable of pairs of an id and the fields.
    def scan(from: nil, after: nil, to: nil, before: nil, reverse: false)
      EntryRange.new(@database, @key, from, after, to, before, reverse)
    end

    def each(&block)
      return to_enum(:each) unless block
      scan.each(&block)
      self
    end

    def reverse_each(&block)
      return to_enum(:reverse_each) unless block
      scan(reverse: true).each(&block)
      self
    end

    # A group of consumers, which need not be there.
    def group(name) = StreamGroup.new(@database, @key, name)
  end

  # A range of ids of a stream.
  class EntryRange < Collection
    def initialize(database, key, from, after, to, before, reverse)
      super(database, key)
      @bounds = Core.id_bounds(from, after, to, before)
      @reverse = reverse ? true : false
    end

    # Gone through.
    def size
      found = 0
      each { found += 1 }
      found
    end

    # Deletes the entries of the range; gives how many there were.
    def clear
      deleted = 0
      each { |id, _| deleted += 1 if @database.__stream([StoredStream::DELETE, @key, id]) }
      deleted
    end

    def each(&block)
      return to_enum(:each) unless block
      each_page(block) do |last, size|
        low, is_low_out, high, is_high_out = @bounds
        if last && @reverse
          high, is_high_out = last[0], true
        elsif last
          low, is_low_out = last[0], true
        end
        @database.__stream([StoredStream::PAGE, @key, low, is_low_out, high, is_high_out, @reverse, size])
      end
    end
  end

  # What a consumer has been given and has not acknowledged.
  PendingEntry = Struct.new(:id, :consumer, :idle_ms, :deliveries)

  # How much is pending, behind which id entries are new, and how much is pending of each consumer.
  GroupSummary = Struct.new(:pending, :last_id, :consumers)

  # A group of consumers, which share the entries of a stream out.
  class StreamGroup
    EXISTS, PENDING, SUMMARY, CREATE, DESTROY, READ, ACKNOWLEDGE, CLAIM = *10..17

    attr_reader :key, :name

    def initialize(database, key, name)
      @database, @key, @name = database, key, name.to_s.dup.freeze
    end

    def exists? = @database.__stream([EXISTS, @key, @name])
    # Makes it, and the stream if there is none. Its new entries are those behind an id, or behind all that there are now.
    # Tells whether it is new.
    def create(after: nil) = @database.__stream([CREATE, @key, @name, after])
    # Tells whether there was one.
    def destroy = @database.__stream([DESTROY, @key, @name])
    # Delivers up to so many new entries to a consumer: pairs of an id and the fields.
    def read(consumer, count = 1) = @database.__stream([READ, @key, @name, consumer, count])
    # An entry is no longer pending; tells whether it was.
    def acknowledge(id) = @database.__stream([ACKNOWLEDGE, @key, @name, id])

    # Gives a consumer an entry that was delivered so many ms ago or longer: its fields, or nil.
    def claim(consumer, id, idle_ms: 0) = @database.__stream([CLAIM, @key, @name, consumer, id, idle_ms])

    # What is pending in a range of ids, of one consumer or of all.
    def pending(consumer: nil, idle_ms: 0, limit: nil, from: nil, after: nil, to: nil, before: nil)
      bounds = Core.id_bounds(from, after, to, before)
      rows = @database.__stream([PENDING, @key, @name, consumer, idle_ms, limit, *bounds])
      rows.map { |row| PendingEntry.new(*row) }
    end

    def summary = GroupSummary.new(*@database.__stream([SUMMARY, @key, @name]))
    def inspect = "#<StreamGroup #{@name.inspect} of #{@key.inspect} of #{@database.name}>"
    alias to_s inspect
  end

  module Core
    # A range of ids: its ends, each with whether it is left out.
    def self.id_bounds(from, after, to, before)
      raise ArgumentError, "a range begins at `from:` or behind `after:`" if from && after
      raise ArgumentError, "a range ends with `to:` or in front of `before:`" if to && before
      [from || after, !after.nil?, to || before, !before.nil?]
    end
  end

  class Database
    def stream_at(key) = StoredStream.new(self, key)
  end
end
