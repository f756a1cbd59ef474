# Handles of hashes, lists, sets and sorted sets under a key of a database. They hold nothing but
# the key, and read and write when used. The collections are those that Redis commands work on.

module Tokaido
  # The methods that all collections share.
  class Collection
    include Enumerable

    # Number of elements read at a time: at first, and at most.
    PAGE_FIRST = 4
    PAGE_MAX = 128

    attr_reader :key

    def initialize(database, key)
      @database, @key = database, key.to_s.dup.freeze
    end

    def empty? = size == 0
    def length = size

    # The number of elements, if there is no argument and no block.
    def count(*wanted, &block) = wanted.empty? && !block ? size : super

    # Deletes the collection; returns whether it existed.
    def clear = @database.delete(@key)

    def inspect = "#<#{self.class.name.split("::").last} #{@key.inspect} of #{@database.name}>"
    alias to_s inspect

    private

    # Passes each element to the visitor, page by page; each page starts after the last element of
    # the previous one. The visitor may write; what it has written is seen from the next element on.
    def each_page(visitor)
      size, last = PAGE_FIRST, nil
      while true
        writes = Core.writes
        page = yield(last, size)
        page.each do |element|
          last = element
          visitor.call(element)
          break if writes != Core.writes
        end
        return self if page.empty?
        size = writes == Core.writes ? [size * 2, PAGE_MAX].min : PAGE_FIRST
      end
    end
  end

  # A hash. It need not exist: the first field creates it, and removing the last one deletes it.
  class StoredHash < Collection
    GET, HAS, COUNT, SET, ADD, DELETE, INCREMENT, INCREMENT_FLOAT, RANDOM, PAGE = *0..9

    def get(field) = @database.__hash(GET, @key, field)
    alias [] get

    def fetch(field, *default)
      value = get(field)
      return value unless value.nil?
      return yield(field) if block_given?
      raise KeyError, "no field #{field.inspect}" if default.empty?
      default.first
    end

    # A hash of those fields that exist.
    def get_many(fields) = fields.map { |field| [field, get(field)] }.reject { |_, value| value.nil? }.to_h

    # Sets a field; returns whether it is new.
    def set(field, value) = @database.__hash(SET, @key, field, value)

    def []=(field, value)
      set(field, value)
    end

    # Sets a field unless it exists; returns whether it was set.
    def add(field, value) = @database.__hash(ADD, @key, field, value)
    # Returns whether the field existed.
    def delete(field) = @database.__hash(DELETE, @key, field)
    def key?(field) = @database.__hash(HAS, @key, field)
    alias has_key? key?
    alias include? key?
    alias member? key?
    def size = @database.__hash(COUNT, @key)
    # Adds to an integer in a field, and returns the new value.
    def increment(field, by = 1) = @database.__hash(INCREMENT, @key, field, by)
    def increment_float(field, by) = @database.__hash(INCREMENT_FLOAT, @key, field, by)
    # A random field and its value.
    def sample = @database.__hash(RANDOM, @key)
    def keys = map { |field, _| field }
    def values = map { |_, value| value }
    def to_h(&block) = block ? super : to_a.to_h

    def each(&block)
      return to_enum(:each) unless block
      each_page(block) { |last, size| @database.__hash(PAGE, @key, last && last[0], size) }
    end

    def update(fields)
      fields.each { |field, value| set(field, value) }
      self
    end
  end

  # A list. The first item creates it, and removing the last one deletes it. Positions are as in an Array.
  class StoredList < Collection
    COUNT, INDEX, PUSH, POP, SET, INSERT, REMOVE, TRIM, PAGE = *0..8

    def size = @database.__list(COUNT, @key)

    # Appends items.
    def push(*items)
      items.each { |item| @database.__list(PUSH, @key, false, item) }
      self
    end

    alias append push

    def <<(item) = push(item)

    # Prepends items, in this order.
    def unshift(*items)
      items.reverse.each { |item| @database.__list(PUSH, @key, true, item) }
      self
    end

    alias prepend unshift

    # Removes the last or the first item and returns it; nil if there is none.
    def pop = @database.__list(POP, @key, false)
    def shift = @database.__list(POP, @key, true)

    # The item at a position, or an array of the items in a range, or of `count` items from a position on.
    def [](at, count = nil)
      return slice_of(*bounds(at, count)) if count || at.is_a?(Range)
      place = place_of(at)
      place && slice_of(place, place + 1).first
    end

    alias slice []

    def []=(at, item)
      place = place_of(at)
      unless place && @database.__list(SET, @key, place, item)
        raise IndexError, "the list has no item #{at}"
      end
    end

    # Inserts an item before the one at a position, or, if it is negative, after it.
    def insert(at, item)
      place = at < 0 ? size + at + 1 : at
      raise IndexError, "the list has no place #{at}" if place < 0
      @database.__list(INSERT, @key, place, item)
      self
    end

    # Removes the item at a position and returns it.
    def delete_at(at)
      place = place_of(at)
      place && @database.__list(REMOVE, @key, place)
    end

    # Removes all items outside a range.
    def trim(range)
      first, last = bounds(range, nil)
      @database.__list(TRIM, @key, first, last)
      self
    end

    # The position of the first item that equals `item`.
    def index(*item, &block) = block ? find_index(&block) : @database.__list(INDEX, @key, *item)

    def last(count = nil)
      return self[-1] unless count
      all = size
      slice_of(count > all ? 0 : all - count, all)
    end

    def each(&block)
      return to_enum(:each) unless block
      walk(block, false)
    end

    def reverse_each(&block)
      return to_enum(:reverse_each) unless block
      walk(block, true)
    end

    private

    def place_of(at)
      raise TypeError, "a position is an integer, this is #{at.class}" unless at.is_a?(Integer)
      return at if at >= 0
      place = size + at
      place if place >= 0
    end

    # The start of a range, or of `count` items from a position on, and the position after its end.
    def bounds(at, count)
      all = size
      if at.is_a?(Range)
        first = at.begin || 0
        last = at.end.nil? ? all : at.end
        first += all if first < 0
        last += all if last < 0
        last += 1 unless at.exclude_end? || at.end.nil?
      else
        first = at < 0 ? all + at : at
        last = first + count
      end
      first = 0 if first < 0
      last = first if last < first
      [first, last > all ? all : last]
    end

    def slice_of(first, last)
      items = []
      while first < last
        page = @database.__list(PAGE, @key, first, last, false, last - first)
        return items if page.empty?
        items.concat(page)
        first += page.size
      end
      items
    end

    # Walks by position: if the block inserts or removes items before the current position, the others move.
    def walk(block, backward)
      size = PAGE_FIRST
      first, last = 0, self.size
      while first < last
        writes = Core.writes
        page = @database.__list(PAGE, @key, first, last, backward, size)
        return self if page.empty?
        page.each do |item|
          backward ? last -= 1 : first += 1
          block.call(item)
          break if writes != Core.writes
        end
        if writes == Core.writes
          size = [size * 2, PAGE_MAX].min
        else
          size = PAGE_FIRST
          last = self.size unless backward
        end
      end
      self
    end
  end

  # A set. The first member creates it, and removing the last one deletes it.
  class StoredSet < Collection
    HAS, COUNT, ADD, REMOVE, POP, RANDOM, PAGE = *0..6

    def include?(member) = @database.__set(HAS, @key, member)
    alias member? include?
    alias === include?
    def size = @database.__set(COUNT, @key)
    # Adds a member; returns whether it is new.
    def add(member) = @database.__set(ADD, @key, member)

    def <<(member)
      add(member)
      self
    end

    # Removes a member; returns whether it existed.
    def delete(member) = @database.__set(REMOVE, @key, member)
    # Removes a random member and returns it.
    def pop = @database.__set(POP, @key)
    def sample = @database.__set(RANDOM, @key)

    # Arrays: the union with another set or array, the intersection, and the difference.
    def |(other) = to_a | other.to_a
    def &(other) = select { |member| other.include?(member) }
    def -(other) = reject { |member| other.include?(member) }

    # Replaces all members.
    def replace(members)
      members = members.to_a
      clear
      members.each { |member| add(member) }
      self
    end

    def each(&block)
      return to_enum(:each) unless block
      each_page(block) { |last, size| @database.__set(PAGE, @key, last, size) }
    end
  end

  # A sorted set: members ordered by score, and by their bytes where scores are equal.
  class StoredSortedSet < Collection
    SCORE, RANK, COUNT, COUNT_IN, RANDOM, ADD, INCREMENT, REMOVE, POP, REMOVE_IN, PAGE = *0..10

    def score(member) = @database.__sorted_set(SCORE, @key, member)
    alias [] score
    def include?(member) = !score(member).nil?
    alias member? include?
    # The number of members before this one, starting from the lowest score or from the highest.
    def rank(member, reverse: false) = @database.__sorted_set(RANK, @key, member, reverse)
    def size = @database.__sorted_set(COUNT, @key)
    # Sets the score of a member; returns whether it is new.
    def add(member, score) = @database.__sorted_set(ADD, @key, member, score)

    def []=(member, score)
      add(member, score)
    end

    # Adds to the score of a member, and returns the new score.
    def increment(member, by = 1) = @database.__sorted_set(INCREMENT, @key, member, by)
    # Removes a member; returns whether it existed.
    def delete(member) = @database.__sorted_set(REMOVE, @key, member)
    # Removes the member with the lowest or the highest score and returns it: a pair of member and score.
    def pop_min = @database.__sorted_set(POP, @key, false)
    def pop_max = @database.__sorted_set(POP, @key, true)
    def sample = @database.__sorted_set(RANDOM, @key)

    # The members with scores in a range, as an Enumerable of pairs of member and score.
    def scan(from: nil, after: nil, to: nil, before: nil, reverse: false)
      ScoreRange.new(@database, @key, from, after, to, before, reverse)
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

    # The `count` members with the highest scores, in descending order.
    def top(count) = scan(reverse: true).first(count)
    def members = map { |member, _| member }
    def to_h(&block) = block ? super : to_a.to_h
  end

  # A range of scores of a sorted set.
  class ScoreRange < Collection
    def initialize(database, key, from, after, to, before, reverse)
      raise ArgumentError, "a range begins at `from:` or behind `after:`" if from && after
      raise ArgumentError, "a range ends with `to:` or in front of `before:`" if to && before
      super(database, key)
      @bounds = [from || after, !after, to || before, !before]
      @reverse = reverse ? true : false
    end

    # Counted without iterating.
    def size = @database.__sorted_set(StoredSortedSet::COUNT_IN, @key, *@bounds)

    # Removes the members of the range; returns their number.
    def clear = @database.__sorted_set(StoredSortedSet::REMOVE_IN, @key, *@bounds)

    def each(&block)
      return to_enum(:each) unless block
      each_page(block) do |last, size|
        @database.__sorted_set(StoredSortedSet::PAGE, @key, *@bounds, @reverse, size, *last)
      end
    end
  end

  class Database
    # The collection under a key, as a handle; it need not exist yet.
    def hash_at(key) = StoredHash.new(self, key)
    def list_at(key) = StoredList.new(self, key)
    def set_at(key) = StoredSet.new(self, key)
    def sorted_set_at(key) = StoredSortedSet.new(self, key)
  end
end
