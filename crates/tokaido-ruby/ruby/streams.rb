# Handles of streams under a key of a database, and the consumer groups that share their entries.

module Tokaido
  # A stream: entries of fields with values, ordered by their ids, which only increase. An id is a
  # time in ms and a sequence number, such as "1700000000000-0"; without the number it is the first
  # one of its time. A stream without entries remains until it is deleted.
  class StoredStream < Collection
    COUNT, LAST_ID, GET, PAGE, ADD, DELETE, TRIM = *0..6

    # Appends an entry, and returns its id.
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
    # The largest id that any entry ever had, even if it was deleted; nil if there is no stream.
    def last_id = @database.__stream([LAST_ID, @key])
    # Deletes an entry; returns whether it existed.
    def delete(id) = @database.__stream([DELETE, @key, id])

    # Deletes entries: all but the last `max_count`, or those before `min_id`. Returns their number.
    def trim(max_count: nil, min_id: nil)
      all = 0
      while true
        trimmed, is_more = @database.__stream([TRIM, @key, max_count, min_id])
        all += trimmed
        return all unless is_more
      end
    end

    # The entries in a range of ids, as an Enumerable of pairs of id and fields.
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

    # A consumer group, which need not exist.
    def group(name) = StreamGroup.new(@database, @key, name)
  end

  # A range of ids of a stream.
  class EntryRange < Collection
    def initialize(database, key, from, after, to, before, reverse)
      super(database, key)
      @bounds = Core.id_bounds(from, after, to, before)
      @reverse = reverse ? true : false
    end

    # Counted by iterating.
    def size
      found = 0
      each { found += 1 }
      found
    end

    # Deletes the entries of the range; returns their number.
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

  # An entry that was delivered to a consumer and not acknowledged.
  PendingEntry = Struct.new(:id, :consumer, :idle_ms, :deliveries)

  # The number of pending entries, the id after which entries are new, and the number of pending entries per consumer.
  GroupSummary = Struct.new(:pending, :last_id, :consumers)

  # A consumer group, which shares the entries of a stream among its consumers.
  class StreamGroup
    EXISTS, PENDING, SUMMARY, CREATE, DESTROY, READ, ACKNOWLEDGE, CLAIM = *10..17

    attr_reader :key, :name

    def initialize(database, key, name)
      @database, @key, @name = database, key, name.to_s.dup.freeze
    end

    def exists? = @database.__stream([EXISTS, @key, @name])
    # Creates it, and the stream if there is none. Its new entries are those after an id, or after
    # all that exist now. Returns whether it is new.
    def create(after: nil) = @database.__stream([CREATE, @key, @name, after])
    # Deletes the group; returns whether it existed.
    def destroy = @database.__stream([DESTROY, @key, @name])
    # Delivers up to `count` new entries to a consumer: pairs of id and fields.
    def read(consumer, count = 1) = @database.__stream([READ, @key, @name, consumer, count])
    # Removes an entry from the pending ones; returns whether it was pending.
    def acknowledge(id) = @database.__stream([ACKNOWLEDGE, @key, @name, id])

    # Reassigns to a consumer an entry that was delivered at least `idle_ms` ago: its fields, or nil.
    def claim(consumer, id, idle_ms: 0) = @database.__stream([CLAIM, @key, @name, consumer, id, idle_ms])

    # The pending entries in a range of ids, of one consumer or of all.
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
    # A range of ids: its ends, each with whether it is excluded.
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
