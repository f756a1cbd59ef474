# The class `Apache` itself: constants, output, results, the log.

class Apache
  OK = 0
  DECLINED = -1
  DONE = -2

  {
    CONTINUE: 100, SWITCHING_PROTOCOLS: 101, PROCESSING: 102, OK: 200, CREATED: 201, ACCEPTED: 202, NON_AUTHORITATIVE: 203,
    NO_CONTENT: 204, RESET_CONTENT: 205, PARTIAL_CONTENT: 206, MULTI_STATUS: 207, MULTIPLE_CHOICES: 300,
    MOVED_PERMANENTLY: 301, MOVED_TEMPORARILY: 302, SEE_OTHER: 303, NOT_MODIFIED: 304, USE_PROXY: 305,
    TEMPORARY_REDIRECT: 307, BAD_REQUEST: 400, UNAUTHORIZED: 401, PAYMENT_REQUIRED: 402, FORBIDDEN: 403, NOT_FOUND: 404,
    METHOD_NOT_ALLOWED: 405, NOT_ACCEPTABLE: 406, PROXY_AUTHENTICATION_REQUIRED: 407, REQUEST_TIME_OUT: 408, CONFLICT: 409,
    GONE: 410, LENGTH_REQUIRED: 411, PRECONDITION_FAILED: 412, REQUEST_ENTITY_TOO_LARGE: 413, REQUEST_URI_TOO_LARGE: 414,
    UNSUPPORTED_MEDIA_TYPE: 415, RANGE_NOT_SATISFIABLE: 416, EXPECTATION_FAILED: 417, UNPROCESSABLE_ENTITY: 422, LOCKED: 423,
    INTERNAL_SERVER_ERROR: 500, NOT_IMPLEMENTED: 501, BAD_GATEWAY: 502, SERVICE_UNAVAILABLE: 503, VARIANT_ALSO_VARIES: 506,
    NOT_EXTENDED: 510,
  }.each { |name, status| const_set("HTTP_#{name}", status) }

  %w[EMERG ALERT CRIT ERR WARNING NOTICE INFO DEBUG].each_with_index do |name, level|
    const_set("LOG_#{name}", level)
    const_set("APLOG_#{name}", level)
  end
  LOG_WARN = LOG_WARNING

  METHODS = %w[
    GET PUT POST DELETE CONNECT OPTIONS TRACE PATCH PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK VERSION_CONTROL CHECKOUT
    UNCHECKOUT CHECKIN UPDATE LABEL REPORT MKWORKSPACE MKACTIVITY BASELINE_CONTROL MERGE INVALID
  ].freeze
  METHODS.each_with_index { |name, number| const_set("M_#{name}", number) }
  private_constant :METHODS if respond_to?(:private_constant)

  PROXYREQ_NONE, PROXYREQ_PROXY, PROXYREQ_REVERSE, PROXYREQ_RESPONSE = 0, 1, 2, 3

  # The reasons why methods are not offered, by name.
  REFUSED = {}

  class << self
    # Like `rputs(text)`, which is in C and appends to the body of the answer, but with a line end.
    def echo(text)
      rputs("#{text}\n")
    end

    # Sets the result of the script, which continues.
    def return(code)
      raise TypeError, "a result is an integer, this is #{code.inspect}" unless code.is_a?(Integer)
      Tokaido::ModMruby::Visit.current!.code = code
      self
    end

    # Writes a line to the server's log; the level is one of the constants LOG_….
    def log(level, message)
      name = level <= 3 ? :error : level == 4 ? :warn : level <= 6 ? :info : :debug
      Tokaido.log(name, message)
      self
    end

    alias errlogger log
    alias syslogger log
    alias syslog log

    def module_name = "mod_mruby"
    def module_version = Tokaido::VERSION
    def server_version = "Tokaido/#{Tokaido::VERSION}"

    # Removes a global variable, and returns the names of the remaining ones.
    def remove_global_variable(name)
      Tokaido::Core.remove_global(name)
      global_variables
    end

    alias global_remove remove_global_variable

    # Makes methods of a class, or of `Apache` itself, raise that they are not offered.
    def refuse(owner, reason, *names)
      title = owner.equal?(singleton_class) ? "Apache." : "#{owner}#"
      names.each do |name|
        REFUSED["#{title}#{name}"] = reason
        owner.define_method(name) do |*|
          raise NotImplementedError, "#{title}#{name} is not offered: #{reason}; see #{Tokaido::ModMruby::PAGE}"
        end
      end
    end
  end

  refuse singleton_class, "it would hold up a worker", :sleep
  refuse singleton_class, "it tells of Apache's own build", :server_build
  refuse singleton_class, "it tells of mruby's own memory", :count_arena
  refuse singleton_class, "a request belongs to no thread", :get_tid
end

Tokaido::Core.prepare_scripts(Tokaido::ModMruby::Visit, Apache)

module Kernel
  def server_name = "Apache"
  def get_server_class = Apache
end

# Data that requests leave for each other, within the virtual machine of one thread.
class Userdata
  KEPT = {}
  private_constant :KEPT if respond_to?(:private_constant)

  def initialize(key = "mruby_default")
    @values = KEPT[key.to_s] ||= {}
  end

  def [](name) = @values[name.to_s]

  def []=(name, value)
    @values[name.to_s] = value
  end

  def method_missing(name, *arguments)
    text = name.to_s
    return self[text.delete_suffix("=")] = arguments.first if text.end_with?("=")
    raise NoMethodError, "undefined method '#{name}'" unless arguments.empty?
    self[text]
  end

  def respond_to_missing?(*) = true
end
