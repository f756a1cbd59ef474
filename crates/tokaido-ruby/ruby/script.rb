# What scripts of `tokaido run` and the shell have in addition to what procedures have: their own
# transactions, standard output in place of the log, and `exit`.

class SystemExit < Exception
  attr_reader :status

  def initialize(status = 0)
    super("exit")
    @status = status
  end
end

module Tokaido
  # Calls the block with a transaction, which is committed and durable when this returns the block's
  # result. An error, `break` or `throw` out of the block rolls it back.
  def self.transact
    raise ArgumentError, "Tokaido.transact takes a block" unless block_given?
    while true
      is_done = false
      Core.begin_transaction(true)
      Core.forget_databases
      begin
        result = yield TRANSACTION
        is_done = true
      ensure
        Core.roll_back unless is_done
      end
      # Otherwise it conflicted with another writer, and is repeated.
      return result if Core.commit
    end
  end

  # Calls the block with a read transaction on what is committed now.
  def self.snapshot
    raise ArgumentError, "Tokaido.snapshot takes a block" unless block_given?
    Core.begin_transaction(false)
    Core.forget_databases
    begin
      yield TRANSACTION
    ensure
      Core.roll_back
    end
  end

  class << Core
    alias report_of_error report

    def report(error)
      error.is_a?(SystemExit) ? { "exit" => error.status } : report_of_error(error)
    end

    # Runs a text as the top level of a file.
    def run_script(text, path, arguments)
      Object.const_set(:ARGV, arguments)
      $0 = path
      run_file(text, path)
      nil
    end

    # What the shell shows for a line's value: in the form of `inspect`, and of `puts`, or nil if there is nothing.
    def shown(value)
      [value.inspect.to_s, value.nil? ? nil : lines_of(value).chomp]
    end

    # What `puts` writes for a value.
    def lines_of(value)
      return value.map { |one| lines_of(one) }.join if value.is_a?(Array)
      text = value.to_s
      text.end_with?("\n") ? text : "#{text}\n"
    end
  end
end

module Kernel
  def puts(*values)
    Tokaido::Core.print(values.empty? ? "\n" : Tokaido::Core.lines_of(values), false)
    nil
  end

  def print(*values)
    Tokaido::Core.print(values.join, false)
    nil
  end

  def p(*values)
    values.each { |value| Tokaido::Core.print("#{value.inspect}\n", false) }
    values.size > 1 ? values : values.first
  end

  def printf(text, *arguments)
    print(format(text, *arguments))
  end

  # Sends a command to the server that the shell is connected to, and returns its reply.
  def command(*arguments)
    Tokaido::Core.command(arguments)
  end

  # Writes to standard error.
  def warn(*values)
    Tokaido::Core.print(Tokaido::Core.lines_of(values), true) unless values.empty?
    nil
  end

  # Ends the script with this status; true is 0, and false is 1.
  def exit(status = true)
    status = status ? 0 : 1 unless status.is_a?(Integer)
    raise ArgumentError, "a status is from 0 to 255, this is #{status}" unless (0..255).include?(status)
    raise SystemExit.new(status)
  end

  # Prints the reason, and ends the script with status 1.
  def abort(message = nil)
    warn(message) if message
    exit(1)
  end
end
