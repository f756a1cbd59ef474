# What C and Rust call, what procedures need besides their own methods, and error reports. The
# methods of `Tokaido::Core` that are not here are in C.

module Tokaido
  # A refusal by a procedure: `refuse "sold out", code: "SOLD_OUT", status: 409`.
  class Refusal < StandardError
    attr_reader :code, :status

    def initialize(message, code: nil, status: nil)
      super(message)
      @code = code
      @status = status
    end
  end

  module Core
    # By number: the class and the method.
    @procedures = []
    # The procedures without a route, by name, with their mode.
    @named = {}
    # Names of the modules that are being loaded, outermost first.
    @loading = []
    # Names of the modules that were loaded, or failed to load, with the error.
    @loaded = {}

    class << self
      # Calls a procedure from within another one. If it may write, either all of its writes happen
      # or none: if it fails, so does the transaction, even if the error is rescued.
      def call_nested(name, arguments)
        owner, method, mode = @named[name]
        return call_other(name, arguments) unless owner
        raise Tokaido::Error, "#{name} writes, and its caller only reads" if mode == "write" && !writable
        begin
          owner.new.__send__(method, TRANSACTION, *arguments)
        rescue Exception => error
          call_failed(error.message) if mode == "write"
          raise error
        end
      end

      # Answers with what a handler returned, unless it is a string.
      def respond_with(response, body)
        case body
        when nil then respond(response.status, "")
        when String then respond(response.status, body)
        when Hash, Array then respond_json([response.status, body])
        else
          raise TypeError, "a handler returns a string, a hash, an array or nil; this is #{body.class}"
        end
      end

      # Registers a procedure of the file that is being loaded.
      def declare(owner, method, name, mode, verb, pattern)
        here = @loading.last or raise Tokaido::Error, "procedures are declared while their file is loaded"
        _, line = owner.instance_method(method).source_location
        add(here, name, mode, verb, pattern, line)
        @procedures << [owner, method]
        @named["#{here}.#{name}"] ||= [owner, method, mode] unless verb
        method
      end

      # Loads a module unless it is loaded already; returns whether this call loaded it.
      def load_module(name)
        if @loaded.key?(name)
          wrong = @loaded[name]
          raise LoadError, "#{name} did not load: #{wrong}" if wrong
          raise LoadError, "files require each other in a loop: #{[*@loading, name].join(" -> ")}" if @loading.include?(name)
          return false
        end
        text, path = source(name)
        raise LoadError, "no file #{name.tr(".", "/")}.rb among the procedures" unless text
        @loaded[name] = nil
        @loading << name
        begin
          run_file(text, path)
        rescue Exception => error
          @loaded[name] = describe(error)
          raise error
        ensure
          @loading.pop
        end
        true
      end

      # For a file that was stopped from outside, so that none of its own code could run any more.
      def abandon
        @loading.each { |name| @loaded[name] = "loading it was stopped" }
        @loading.clear
        nil
      end

      # The number of procedures.
      def declared
        @procedures.size
      end

      # Keeps only the procedures at these indexes, and forgets the others.
      def keep(places)
        @procedures = places.map { |place| @procedures[place] }
        nil
      end

      # The report of an error for Rust.
      def report(error)
        trace = user_trace(error)
        report = { "message" => describe(error, trace), "traceback" => trace.join("\n") }
        if error.is_a?(Refusal)
          report["refused"] = true
          report["code"] = error.code.to_s if error.code
          report["status"] = error.status if error.status.is_a?(Integer)
        elsif error.is_a?(Tokaido::Error) && error.message.start_with?("WRONGTYPE ")
          report["refused"] = true
          report["code"] = "WRONGTYPE"
          report["message"] = error.message.delete_prefix("WRONGTYPE ")
        end
        report
      end

      # Converts other objects, for receivers of strings, numbers, arrays and hashes.
      def plain(value)
        case value
        when Range, Scan, Enumerator, Set then value.to_a
        when Struct, Data, Fields then value.to_h
        else raise TypeError, "#{value.class} is nothing that can be passed on"
        end
      end

      def forget_databases
        DATABASES.clear
        nil
      end

      private

      def call_other(name, arguments)
        is_done, result, code, status = call_elsewhere([name, *arguments])
        return result if is_done
        raise Refusal.new(result, code: code, status: status) if code || status
        raise Tokaido::Error, result
      end

      def user_trace(error)
        (error.backtrace || []).reject { |line| line.start_with?("(tokaido)") || line.start_with?("(unknown)") }
      end

      # The message with the place where it was raised, unless the message contains it.
      def describe(error, trace = user_trace(error))
        message = error.message.to_s
        return message if error.is_a?(Refusal) || error.is_a?(SyntaxError)
        name = error.is_a?(Tokaido::Error) || error.instance_of?(RuntimeError) ? "" : " (#{error.class})"
        place = trace.first
        # The method follows the line: `hits.rb:3:in count`.
        place = place.split(":in ").first if place
        place ? "#{place}: #{message}#{name}" : "#{message}#{name}"
      end
    end

    # Databases by the name under which they were opened.
    DATABASES = {}
  end
end

module Kernel
  # Loads another procedure file: `require "shop/prices"`. The product's own libraries are loaded already.
  def require(name)
    return false if %w[tokaido json set].include?(name)
    Tokaido::Core.load_module(name.delete_suffix(".rb").tr("/", "."))
  end

  alias require_relative require

  # Writes to the server's log.
  def puts(*texts)
    texts.flatten.each { |text| Tokaido.log(:info, text.to_s) }
    nil
  end

  def print(*texts)
    Tokaido.log(:info, texts.join)
    nil
  end

  def p(*values)
    values.each { |value| Tokaido.log(:info, value.inspect) }
    values.size > 1 ? values : values.first
  end
end

class LoadError < ScriptError
end
