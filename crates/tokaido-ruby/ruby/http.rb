# What a handler gets in addition to the transaction.

module Tokaido
  # Texts by name; a name may be a symbol.
  class Fields
    include Enumerable

    # If a name occurs twice, the values are joined, or the last one counts.
    def initialize(pairs, separator = nil)
      @texts = {}
      pairs.each do |name, value|
        before = separator && @texts[name]
        @texts[name] = before ? "#{before}#{separator}#{value}" : value
      end
    end

    def [](name) = @texts[name.to_s]
    def fetch(name, *default, &block) = @texts.fetch(name.to_s, *default, &block)
    def key?(name) = @texts.key?(name.to_s)
    def keys = @texts.keys
    def values = @texts.values
    def size = @texts.size
    def empty? = @texts.empty?
    def to_h = @texts.dup
    def inspect = @texts.inspect

    def each(&block)
      return to_enum(:each) unless block
      @texts.each(&block)
      self
    end
  end

  class Request
    # GET, POST, …
    def method = Core.request_field(0)
    # The path as sent, without the query.
    def path = Core.request_field(1)
    # The part after the question mark.
    def query_string = Core.request_field(2)
    # The whole body.
    def body = Core.request_field(3)
    # The values of the route's `:name` and `*name`.
    def params = @params ||= Fields.new(Core.request_pairs(0))
    # The decoded query; if a name occurs twice, the last value.
    def query = @query ||= Fields.new(Core.request_pairs(1))
    # The headers, with their names in lower case.
    def headers = @headers ||= Fields.new(Core.request_pairs(2), ", ")

    # The body, decoded from JSON.
    def json
      JSON.parse(body)
    rescue JSON::ParserError => error
      raise Refusal.new("the body of the request is not JSON: #{error.message}", status: 400)
    end

    # A parameter of the route or of the query.
    def [](name)
      params.key?(name) ? params[name] : query[name]
    end
  end

  class Response
    def status = @status || 200
    def headers = HEADERS

    def status=(status)
      unless status.is_a?(Integer) && status >= 200 && status <= 599
        raise ArgumentError, "a status is an integer from 200 to 599, this is #{status.inspect}"
      end
      @status = status
    end

    # Appends to the body.
    def write(text)
      Core.write(text.to_s)
      self
    end

    alias << write

    # Appends a value to the body, as JSON.
    def json(value)
      Core.header_set("content-type", "application/json", false) unless headers["content-type"]
      Core.write(JSON.generate(value))
      nil
    end
  end

  # The headers of the response.
  class Headers
    def [](name)
      Core.header_get(name)
    end

    def []=(name, value)
      if value.is_a?(Array)
        value.each_with_index { |one, i| Core.header_set(name, one, i > 0) }
      else
        Core.header_set(name, value, false)
      end
    end
  end

  Response::HEADERS = Headers.new.freeze
end

module JSON
  class JSONError < StandardError
  end

  class ParserError < JSONError
  end

  class GeneratorError < JSONError
  end

  def self.parse(text)
    Tokaido::Core.json_parse(text)
  rescue Tokaido::Error => error
    raise ParserError, error.message
  end

  def self.generate(value)
    Tokaido::Core.json_generate(value)
  rescue Tokaido::Error, TypeError => error
    raise GeneratorError, error.message
  end

  class << self
    alias dump generate
    alias load parse
  end
end

class Object
  def to_json(*)
    JSON.generate(self)
  end
end
