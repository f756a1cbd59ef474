# How a file declares its procedures.

module Tokaido
  # The base class of procedure classes:
  #
  #   class Hits < Tokaido::Procedures
  #     write def count(tx, page) = tx[:hits].increment(page)
  #   end
  #
  # Each call has an object of its own.
  class Procedures
    class << self
      # Makes methods read procedures.
      def read(*names)
        names.each { |name| Core.declare(self, name, name.to_s, "read", nil, nil) }
        names.size > 1 ? names : names.first
      end

      # Makes methods write procedures.
      def write(*names)
        names.each { |name| Core.declare(self, name, name.to_s, "write", nil, nil) }
        names.size > 1 ? names : names.first
      end

      # Handlers of HTTP routes. Those of GET, HEAD and OPTIONS read, the others may write, unless `writes:` says otherwise.
      def get(pattern, method = nil, writes: false, &block) = route("GET", pattern, method, writes, block)
      def head(pattern, method = nil, writes: false, &block) = route("HEAD", pattern, method, writes, block)
      def options(pattern, method = nil, writes: false, &block) = route("OPTIONS", pattern, method, writes, block)
      def post(pattern, method = nil, writes: true, &block) = route("POST", pattern, method, writes, block)
      def put(pattern, method = nil, writes: true, &block) = route("PUT", pattern, method, writes, block)
      def patch(pattern, method = nil, writes: true, &block) = route("PATCH", pattern, method, writes, block)
      def delete(pattern, method = nil, writes: true, &block) = route("DELETE", pattern, method, writes, block)

      private

      def route(verb, pattern, method, writes, block)
        name = "#{verb} #{pattern}"
        if block
          raise ArgumentError, "#{name} has a method and a block; give one of them" if method
          method = name.to_sym
          define_method(method, &block)
        end
        raise ArgumentError, "#{name} needs a block, or the name of a method" unless method.is_a?(Symbol)
        Core.declare(self, method, name, writes ? "write" : "read", verb, pattern)
      end
    end

    private

    # Ends the procedure: its caller gets the message, and all of its changes are undone.
    def refuse(message, code: nil, status: nil)
      raise Refusal.new(message, code: code, status: status)
    end
  end

  # Writes a line to the server's log: `level` is :error, :warn, :info or :debug.
  def self.log(level, message)
    Core.log(level, message.to_s)
    nil
  end
end
