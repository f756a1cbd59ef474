# Regular expressions: Ruby's classes over PCRE2. Positions are bytes internally, and characters in the API.

class RegexpError < StandardError
end

class Regexp
  IGNORECASE = 1
  EXTENDED = 2
  MULTILINE = 4

  # Maximum number of literals whose expressions are kept; beyond it, they are compiled again.
  KEPT_MAX = 500

  # The values of the match's global variables when there is no match.
  NOTHING = Array.new(14).freeze

  @kept = {}
  @is_remembered = false

  class << self
    # The expression of a literal: the same object for the same text.
    def compile(source, options = nil, _encoding = nil)
      return source if source.is_a?(Regexp)
      key = options ? "#{options}/#{source}" : "/#{source}"
      @kept.clear if @kept.size >= KEPT_MAX
      @kept[key] ||= new(source, options)
    end

    def escape(text)
      escaped = ""
      text.to_s.each_char do |char|
        escaped << (ESCAPES[char] || char)
      end
      escaped
    end

    alias quote escape

    def union(*patterns)
      patterns = patterns.first if patterns.size == 1 && patterns.first.is_a?(Array)
      return new("(?!)") if patterns.empty?
      new(patterns.map { |pattern| pattern.is_a?(Regexp) ? pattern.to_s : escape(pattern) }.join("|"))
    end

    def last_match(group = nil)
      group && $~ ? $~[group] : $~
    end

    # Sets `$~`, `$1` and so on.
    def remember(match)
      return match unless match || @is_remembered
      Tokaido::Core.remember(match ? match.__globals : NOTHING)
      @is_remembered = match ? true : false
      match
    end

    # The expression for a pattern.
    def __of(pattern)
      return pattern if pattern.is_a?(Regexp)
      raise TypeError, "a pattern is a Regexp or a String, this is #{pattern.class}" unless pattern.is_a?(String)
      compile(escape(pattern))
    end
  end

  ESCAPES = { "\n" => "\\n", "\t" => "\\t", "\r" => "\\r", "\f" => "\\f", "\v" => "\\v", " " => "\\ " }
  ".*?+^$|\\()[]{}-#".each_char { |char| ESCAPES[char] = "\\#{char}" }
  ESCAPES.freeze

  attr_reader :source, :options

  def initialize(source, options = nil)
    if source.is_a?(Regexp)
      source, options = source.source, source.options
    end
    @source = "#{source}".freeze
    @options = number_of(options)
    prepare
  end

  def match(text, at = 0)
    return Regexp.remember(nil) if text.nil?
    text = text.to_s
    found = Regexp.remember(__match(text, text.__byte_place(at)))
    found && block_given? ? yield(found) : found
  end

  def match?(text, at = 0)
    return false if text.nil?
    text = text.to_s
    place = text.__byte_place(at)
    place && search(text, place) ? true : false
  end

  def =~(text)
    found = match(text)
    found && found.begin(0)
  end

  def ===(text)
    (text.is_a?(String) || text.is_a?(Symbol)) && match(text) ? true : false
  end

  def ==(other)
    other.is_a?(Regexp) && source == other.source && options == other.options
  end

  alias eql? ==

  def hash = [source, options].hash

  def names = @names.map { |name, _| name }.uniq

  def casefold? = @options & IGNORECASE != 0

  def to_s
    on = letters
    off = "mix".delete(on.empty? ? "-" : on)
    "(?#{on}#{"-" unless off.empty?}#{off}:#{@source})"
  end

  def inspect = "/#{@source}/#{letters}"

  # The numbers of the groups with a name.
  def __groups_of(name)
    numbers = @names.select { |known, _| known == name }.map { |_, number| number }
    raise IndexError, "undefined group name reference: #{name}" if numbers.empty?
    numbers
  end

  def __names = @names

  # The first match at or after a byte offset.
  def __match(text, at)
    offsets = at && search(text, at)
    offsets && MatchData.new(self, text, offsets)
  end

  # Calls the block with each match in turn.
  def __each_match(text)
    at = 0
    while at <= text.bytesize && (match = __match(text, at))
      yield match
      first, at = match.__bytes(0)
      at += text.__width(at) if first == at
    end
  end

  private

  def number_of(options)
    case options
    when nil, false then 0
    when Integer then options & 7
    when String
      options.each_char.sum do |letter|
        { "i" => IGNORECASE, "x" => EXTENDED, "m" => MULTILINE, "o" => 0, "u" => 0 }[letter] or
          raise ArgumentError, "unknown regexp option: #{options}"
      end
    else IGNORECASE
    end
  end

  def letters
    "#{"m" if @options & MULTILINE != 0}#{"i" if @options & IGNORECASE != 0}#{"x" if @options & EXTENDED != 0}"
  end

  def prepare
    # Line ends are as in Ruby, and invalid UTF-8 matches nothing.
    flags = "mU#{"i" if @options & 1 != 0}#{"x" if @options & 2 != 0}#{"s" if @options & 4 != 0}"
    @number, @count, @names = Tokaido::Core.regexp_compile(@source, flags)
  rescue Tokaido::Error => error
    raise RegexpError, error.message
  end

  def search(text, at)
    found = Tokaido::Core.regexp_search(@number, text, at)
    # It was freed in favour of others, so it is compiled again.
    while found == false
      prepare
      found = Tokaido::Core.regexp_search(@number, text, at)
    end
    found
  rescue Tokaido::Error => error
    raise RegexpError, error.message
  end
end

class MatchData
  attr_reader :regexp, :string

  def initialize(regexp, string, offsets)
    @regexp = regexp
    @string = string.frozen? ? string : string.dup.freeze
    @offsets = offsets
  end

  def [](group, count = nil)
    return to_a[group, count] if count
    case group
    when Integer then group < 0 ? to_a[group] : __text(group)
    when Range then to_a[group]
    else
      numbers = @regexp.__groups_of(group.to_s)
      __text(numbers.reverse.find { |number| @offsets[2 * number] >= 0 } || numbers.last)
    end
  end

  def to_a = Array.new(size) { |group| __text(group) }
  def captures = to_a.drop(1)
  def names = @regexp.names
  def named_captures = names.map { |name| [name, self[name]] }.to_h
  def size = @offsets.size / 2
  def to_s = __text(0)
  def pre_match = @string.byteslice(0, @offsets[0])
  def post_match = @string.byteslice(@offsets[1], @string.bytesize - @offsets[1])
  def values_at(*groups) = groups.map { |group| self[group] }
  def begin(group) = place(group, 0)
  def end(group) = place(group, 1)
  def offset(group) = [self.begin(group), self.end(group)]

  alias length size

  def ==(other)
    other.is_a?(MatchData) && string == other.string && regexp == other.regexp && offset(0) == other.offset(0)
  end

  def inspect
    names = @regexp.__names.map { |name, number| [number, name] }.to_h
    groups = (1...size).map { |group| " #{names[group] || group}:#{__text(group).inspect}" }
    "#<MatchData #{to_s.inspect}#{groups.join}>"
  end

  def __bytes(group) = [@offsets[2 * group], @offsets[2 * group + 1]]

  def __text(group)
    first = @offsets[2 * group]
    first && first >= 0 ? @string.byteslice(first, @offsets[2 * group + 1] - first) : nil
  end

  # The values of $~, $&, $`, $', $+ and $1 to $9.
  def __globals
    groups = captures
    [self, to_s, pre_match, post_match, groups.compact.last] + Array.new(9) { |i| groups[i] }
  end

  # Expands the group references in a replacement.
  def __expand(replacement)
    return replacement unless replacement.include?("\\")
    expanded = ""
    rest = replacement
    while (at = rest.byteindex("\\"))
      expanded << rest.byteslice(0, at)
      rest = rest.byteslice(at + 1, rest.bytesize)
      sign = rest.byteslice(0, 1)
      rest = rest.byteslice(1, rest.bytesize) || ""
      case sign
      when "0".."9" then expanded << __text(sign.to_i).to_s
      when "&" then expanded << to_s
      when "`" then expanded << pre_match
      when "'" then expanded << post_match
      when "\\", "" then expanded << "\\"
      when "k"
        if rest.start_with?("<") && (close = rest.byteindex(">"))
          expanded << self[rest.byteslice(1, close - 1)].to_s
          rest = rest.byteslice(close + 1, rest.bytesize)
        else
          expanded << "\\k"
        end
      else expanded << "\\" << sign
      end
    end
    expanded << rest
  end

  private

  def place(group, which)
    group = @regexp.__groups_of(group.to_s).last unless group.is_a?(Integer)
    raise IndexError, "index #{group} out of matches" unless group >= 0 && group < size
    at = @offsets[2 * group + which]
    at < 0 ? nil : @string.byteslice(0, at).size
  end
end

class String
  alias __sub sub
  alias __gsub gsub
  alias __split split
  alias __index index
  alias __rindex rindex
  alias __slice []
  alias __set []=
  alias __starts_with start_with?
  alias __partition partition

  def =~(pattern)
    raise TypeError, "type mismatch: String given" if pattern.is_a?(String)
    pattern =~ self
  end

  def match(pattern, at = 0, &block) = (pattern.is_a?(Regexp) ? pattern : Regexp.new(pattern)).match(self, at, &block)
  def match?(pattern, at = 0) = (pattern.is_a?(Regexp) ? pattern : Regexp.new(pattern)).match?(self, at)

  def scan(pattern, &block)
    last, found = nil, []
    Regexp.__of(pattern).__each_match(self) do |match|
      last = match
      entry = match.size > 1 ? match.captures : match.to_s
      block ? (Regexp.remember(match); block.call(entry)) : found << entry
    end
    Regexp.remember(last)
    block ? self : found
  end

  def sub(pattern, replacement = nil, &block)
    return block ? __sub(pattern, &block) : __sub(pattern, replacement) unless pattern.is_a?(Regexp) || replacement.is_a?(Hash)
    match = Regexp.remember(Regexp.__of(pattern).__match(self, 0))
    match ? match.pre_match + __replaced(match, replacement, block) + match.post_match : dup
  end

  def gsub(pattern, replacement = nil, &block)
    return to_enum(:gsub, pattern) unless replacement || block
    return block ? __gsub(pattern, &block) : __gsub(pattern, replacement) unless pattern.is_a?(Regexp) || replacement.is_a?(Hash)
    last, made, behind = nil, "", 0
    Regexp.__of(pattern).__each_match(self) do |match|
      last = match
      first, past = match.__bytes(0)
      Regexp.remember(match) if block
      made << byteslice(behind, first - behind) << __replaced(match, replacement, block)
      behind = past
    end
    Regexp.remember(last)
    last ? made << byteslice(behind, bytesize - behind) : dup
  end

  def sub!(*arguments, &block)
    made = sub(*arguments, &block)
    made == self ? nil : replace(made)
  end

  def gsub!(*arguments, &block)
    made = gsub(*arguments, &block)
    made == self ? nil : replace(made)
  end

  def split(pattern = nil, limit = 0, &block)
    unless pattern.is_a?(Regexp)
      pieces = __split(pattern, limit)
    else
      pieces = __split_by(pattern, limit)
    end
    return pieces unless block
    pieces.each(&block)
    self
  end

  def index(pattern, at = 0)
    return __index(pattern, at) unless pattern.is_a?(Regexp)
    match = pattern.match(self, at)
    match && match.begin(0)
  end

  def rindex(pattern, at = size)
    return __rindex(pattern, at) unless pattern.is_a?(Regexp)
    at += size if at < 0
    at = size if at > size
    while at >= 0
      match = pattern.__match(self, __byte_place(at))
      return Regexp.remember(match) && at if match && match.begin(0) == at
      at -= 1
    end
    Regexp.remember(nil)
  end

  def [](place, *more)
    return __slice(place, *more) unless place.is_a?(Regexp)
    match = place.match(self)
    match && match[more.empty? ? 0 : more.first]
  end

  alias slice []

  def []=(place, *more)
    return __set(place, *more) unless place.is_a?(Regexp)
    match = place.match(self) or raise IndexError, "regexp not matched"
    first, past = match.__bytes(more.size > 1 ? more.first : 0)
    replace(byteslice(0, first) + more.last + byteslice(past, bytesize - past))
    more.last
  end

  def start_with?(*starts)
    starts.any? do |start|
      next __starts_with(start) unless start.is_a?(Regexp)
      match = start.match(self)
      match && match.begin(0) == 0
    end
  end

  def partition(pattern)
    return __partition(pattern) unless pattern.is_a?(Regexp)
    match = pattern.match(self)
    match ? [match.pre_match, match.to_s, match.post_match] : [dup, "", ""]
  end

  # The number of bytes of the character at a byte offset.
  def __width(at)
    byte = getbyte(at)
    return 1 if byte.nil? || byte < 0xc0
    byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
  end

  # The byte offset of a character; nil if it is out of range.
  def __byte_place(at)
    return 0 if at == 0
    at += size if at < 0
    at < 0 || at > size ? nil : __slice(0, at).bytesize
  end

  private

  def __replaced(match, replacement, block)
    case replacement
    when nil then block.call(match.to_s).to_s
    when Hash then replacement[match.to_s].to_s
    else match.__expand(replacement)
    end
  end

  def __split_by(pattern, limit)
    return [] if empty?
    return [dup] if limit == 1
    pieces, behind = [], 0
    pattern.__each_match(self) do |match|
      first, past = match.__bytes(0)
      next if first == past && (first == behind || first == bytesize)
      pieces << byteslice(behind, first - behind)
      behind = past
      pieces.concat(match.captures.compact)
      break if limit > 0 && pieces.size >= limit - 1
    end
    pieces << byteslice(behind, bytesize - behind)
    pieces.pop while limit == 0 && pieces.last && pieces.last.empty?
    pieces
  end
end

class Symbol
  def =~(pattern) = to_s =~ pattern
  def match(pattern, at = 0) = to_s.match(pattern, at)
  def match?(pattern, at = 0) = to_s.match?(pattern, at)
end

class NilClass
  def =~(_pattern) = nil
end

module Kernel
  def !~(other) = !(self =~ other)
end
