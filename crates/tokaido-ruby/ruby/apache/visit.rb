# The request that mod_mruby scripts answer, and its way through the phases.

module Tokaido
  module ModMruby
    PAGE = "docs/mod_mruby.md"

    # Headers and notes with case-insensitive names, and their values, as in Apache.
    class Table
      def initialize
        # By the name in lower case: the name as it was first set, and the values.
        @entries = {}
      end

      def [](name)
        entry = @entries[name.to_s.downcase]
        entry && entry[1]
      end

      def []=(name, value)
        @entries[name.to_s.downcase] = [name.to_s, value.to_s]
      end

      def add(name, value)
        entry = @entries[name.to_s.downcase]
        entry ? entry << value.to_s : self[name] = value
      end

      def each
        @entries.each_value { |entry| 1.upto(entry.size - 1) { |i| yield entry[0], entry[i] } }
      end

      # If a name occurs twice, the last value.
      def to_h
        all = {}
        each { |name, value| all[name] = value }
        all
      end
    end

    # One file: its compiled code and its settings.
    class Script
      attr_reader :path, :location, :realm, :method, :pattern

      def initialize(path, code, settings)
        @path = path
        @code = code
        @location = settings["location"]
        @realm = settings["realm"] || "Tokaido"
        @method, @pattern = settings["method"], settings["pattern"]
      end

      # Whether a path is at or below its location.
      def covers?(path)
        return true unless @location
        path == @location || path.start_with?(@location.end_with?("/") ? @location : "#{@location}/")
      end

      def run
        Core.run_compiled(@code)
      end
    end

    # The request that is being answered.
    class Visit
      OK = 0
      DECLINED = -1
      DONE = -2
      UNAUTHORIZED = 401

      # Statuses with one of the server's own pages.
      PAGES = {
        300 => "Multiple Choices", 301 => "Moved Permanently", 302 => "Found", 303 => "See Other", 304 => "Not Modified",
        305 => "Use Proxy", 307 => "Temporary Redirect", 308 => "Permanent Redirect", 400 => "Bad Request", 401 => "Unauthorized",
        402 => "Payment Required", 403 => "Forbidden", 404 => "Not Found", 405 => "Method Not Allowed", 406 => "Not Acceptable",
        407 => "Proxy Authentication Required", 408 => "Request Timeout", 409 => "Conflict", 410 => "Gone",
        411 => "Length Required", 412 => "Precondition Failed", 413 => "Request Entity Too Large", 414 => "Request-URI Too Long",
        415 => "Unsupported Media Type", 416 => "Requested Range Not Satisfiable", 417 => "Expectation Failed",
        418 => "I'm A Teapot", 421 => "Misdirected Request", 422 => "Unprocessable Entity", 423 => "Locked",
        424 => "Failed Dependency", 425 => "Too Early", 426 => "Upgrade Required", 428 => "Precondition Required",
        429 => "Too Many Requests", 431 => "Request Header Fields Too Large", 451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error", 501 => "Not Implemented", 502 => "Bad Gateway", 503 => "Service Unavailable",
        504 => "Gateway Timeout", 505 => "HTTP Version Not Supported", 506 => "Variant Also Negotiates",
        507 => "Insufficient Storage", 508 => "Loop Detected", 510 => "Not Extended", 511 => "Network Authentication Required",
      }.freeze

      # Headers that only the server sets.
      OWN = %w[content-length transfer-encoding date server connection].freeze

      # The scripts of each phase, in the order of their files.
      PHASES = {
        "post_read_request" => [], "translate_name" => [], "access_checker" => [], "check_user_id" => [],
        "authn_check_password" => [], "auth_checker" => [], "fixups" => [], "output_filter" => [], "log_transaction" => [],
      }.freeze

      # Scripts that answer requests: by path, and by method and route.
      BY_PATH = {}
      BY_ROUTE = {}

      # Global variables that existed before any script.
      @globals = nil
      @has_phases = false

      class << self
        def current = Core.visit

        def current!
          Core.visit or raise Tokaido::Error, "there is no request; this works while a request is answered"
        end

        def add_phase(phase, script)
          @has_phases = true
          PHASES[phase] << script
        end

        # Notes whether a text may use global variables.
        def look_for_globals(text)
          @has_globals ||= text.include?("$")
        end

        # Removes the global variables that a request created.
        def sweep_globals
          return unless @has_globals
          names = global_variables
          @globals ||= names
          return if names.size == @globals.size
          (names - @globals).each { |name| Core.remove_global(name) }
        end

        # Answers a request if the script is surrounded by phases, or may leave global variables
        # behind. Otherwise C does it.
        def answer(script)
          sweep_globals if @has_globals && !@globals
          Core.visit = visit = new(script)
          if @has_phases
            visit.respond(visit.run)
            visit.run_log
          else
            script.run
            visit.respond
          end
          nil
        ensure
          Core.visit = nil
          sweep_globals if @has_globals
        end

        # Raises an error that says why output is impossible.
        def refuse_output = current!.check_open
      end

      attr_writer :code, :status
      attr_accessor :content_type, :filter, :script

      def initialize(script)
        @script = script
      end

      def code = @code || OK
      def status = @status || 200
      def body = @body ||= ""

      # Fields of the request that were read or set.
      def fields = @fields ||= {}

      def check_open
        raise Tokaido::Error, "the answer is made, and what is called for the log changes nothing of it" if @answered
        raise Tokaido::Error, "a filter changes the body by the methods of Apache::Filter" if @filter
      end

      # The path, decoded if possible.
      def path
        fields[:uri] ||= Core.request_field(11)
      end

      def headers_in
        @headers_in ||= begin
          headers = Table.new
          joined = {}
          Core.request_pairs(2).each do |name, value|
            joined[name] = joined[name] ? "#{joined[name]}, #{value}" : value
          end
          joined.each { |name, value| headers[name.split("-").map(&:capitalize).join("-")] = value }
          headers
        end
      end

      def headers_out = @headers_out ||= Table.new
      def err_headers_out = @err_headers_out ||= Table.new
      def notes = @notes ||= Table.new

      # The CGI environment.
      def env
        @env ||= begin
          env = Table.new
          headers_in.each { |name, value| env[ModMruby.cgi_name(name)] = value unless HIDDEN.include?(name.downcase) }
          request = Apache::Request.new
          {
            "CONTENT_TYPE" => headers_in["Content-Type"], "CONTENT_LENGTH" => headers_in["Content-Length"],
            "SERVER_SOFTWARE" => Apache.server_version, "SERVER_NAME" => request.hostname, "SERVER_ADDR" => Core.request_field(8),
            "SERVER_PORT" => Core.request_field(9), "REMOTE_ADDR" => Core.request_field(6), "REMOTE_PORT" => Core.request_field(7),
            "DOCUMENT_ROOT" => Core.document_root, "REQUEST_SCHEME" => "http", "SCRIPT_FILENAME" => @script.path,
            "GATEWAY_INTERFACE" => "CGI/1.1", "SERVER_PROTOCOL" => request.protocol, "REQUEST_METHOD" => request.method,
            "QUERY_STRING" => request.args || "", "REQUEST_URI" => request.unparsed_uri, "SCRIPT_NAME" => path,
            "PATH_INFO" => request.path_info,
          }.each { |name, value| env[name] = value unless value.nil? || value == "" && name != "QUERY_STRING" }
          Core.request_pairs(0).each { |name, value| env["MATCH_#{name.upcase}"] = value }
          env
        end
      end

      # Runs the phases up to the handler, and then the filters; returns the result.
      def run
        code = run_all("post_read_request")
        code = translate if code == OK
        %w[access_checker check_user_id].each { |phase| code = run_all(phase) if code == OK }
        code = authenticate if code == OK
        %w[auth_checker fixups].each { |phase| code = run_all(phase) if code == OK }
        return code unless code == OK
        code = answered_by(@script)
        own?(code) ? filtered(code) : code
      end

      # Sends the answer for a result.
      def respond(code = self.code)
        @answered = true
        return send_own(status) if code == 0
        case code
        when DONE then send_own(status)
        when DECLINED then send_page(404)
        when 200..299 then send_own(@status = code)
        else send_page(PAGES.key?(code) ? code : 500)
        end
      end

      # Errors no longer affect the answer.
      def run_log
        each_of("log_transaction") do |script|
          begin
            script.run
          rescue StandardError => error
            Tokaido.log(:error, "#{script.path}: #{error.message} (#{error.class})")
          end
        end
      end

      private

      def own?(code) = code == OK || code == DONE || code >= 200 && code < 300

      def answered_by(script)
        @code = OK
        script.run
        code
      end

      def each_of(phase)
        PHASES[phase].each { |script| yield script if script.covers?(path) }
      end

      # Runs the scripts of a phase, unless one rejects the request.
      def run_all(phase)
        each_of(phase) do |script|
          code = answered_by(script)
          return code unless code == OK || code == DECLINED
        end
        OK
      end

      # Determines which script answers: the one of another path or route, if a script says so.
      def translate
        file, uri = @script.path, path
        PHASES["translate_name"].each do |script|
          next unless script.covers?(uri)
          code = answered_by(script)
          return code unless code == OK || code == DECLINED
          break if code == OK
        end
        chosen = fields[:filename]
        if chosen && chosen != file
          @script = BY_PATH[chosen] or return 404
        elsif path != uri
          method = Core.request_field(0)
          @script = BY_ROUTE["#{method} #{path}"] || BY_ROUTE["* #{path}"] or return 404
        end
        OK
      end

      # Lets the scripts of the phase check the client's user name and password.
      def authenticate
        each_of("authn_check_password") do |script|
          kind, given = headers_in["Authorization"].to_s.split(" ", 2)
          user, password = given.to_s.unpack1("m").split(":", 2) if kind && kind.downcase == "basic"
          return challenge(script) unless password
          @credentials = { user: user, password: password, realm: script.realm }
          code = answered_by(script)
          @credentials = nil
          case code
          when Apache::AuthnProvider::AUTH_GRANTED
            fields[:user], fields[:ap_auth_type] = user, "Basic"
          when Apache::AuthnProvider::AUTH_GENERAL_ERROR then return 500
          else return challenge(script)
          end
        end
        OK
      end

      def challenge(script)
        err_headers_out["WWW-Authenticate"] = "Basic realm=\"#{script.realm.delete('"\\')}\""
        UNAUTHORIZED
      end

      def filtered(code)
        each_of("output_filter") do |script|
          @filter = [body]
          begin
            answered_by(script)
            return @filter_status if @filter_status
            @body = @filter.join
          ensure
            @filter = nil
          end
        end
        code
      end

      def send_table(table, typed)
        table.each do |name, value|
          plain = name.downcase
          next if OWN.include?(plain) || typed && plain == "content-type"
          Core.header_set(name, value, true)
        end
      end

      def send_own(status)
        status = 500 unless status.is_a?(Integer) && status >= 200 && status <= 599
        send_table(@err_headers_out, @content_type) if @err_headers_out
        send_table(@headers_out, @content_type) if @headers_out
        encoding = @fields && @fields[:content_encoding]
        Core.header_set("content-encoding", encoding, false) if encoding
        Core.header_set("content-type", @content_type, false) if @content_type
        Core.respond_bare(status, body)
      end

      # Sends the server's own page. Of the scripts' headers it has only a redirect's target and those for errors.
      def send_page(status)
        @status = status
        send_table(@err_headers_out, true) if @err_headers_out
        location = status < 400 && @headers_out && @headers_out["Location"]
        Core.header_set("location", location, false) if location
        return Core.respond_bare(status, "") if status < 400
        Core.header_set("content-type", "application/json", false)
        Core.respond_bare(status, "{\"error\":{\"message\":\"#{PAGES[status]}\"}}\n")
      end

      public

      attr_reader :credentials

      def fail_filter(status)
        @filter_status = status
      end
    end
  end

  module Core
    class << self
      # Loads a file of the dialect; its settings were checked in Rust.
      def load_script(name, settings)
        text, path = source(name)
        ModMruby::Visit.look_for_globals(text)
        phase = settings["phase"] || "handler"
        script = ModMruby::Script.new(path, compile(text, path), settings)
        if phase == "child_init"
          script.run
        elsif phase != "handler"
          ModMruby::Visit.add_phase(phase, script)
        else
          route = "#{script.method} #{script.pattern}"
          add(name, "handler", settings["writes"] == "true" ? "write" : "read", script.method, script.pattern, 1)
          @procedures << script
          ModMruby::Visit::BY_PATH[path] = ModMruby::Visit::BY_ROUTE[route] = script
        end
        true
      end

      alias __load_module load_module

      def load_module(name)
        text, = source(name)
        ModMruby::Visit.look_for_globals(text) if text
        __load_module(name)
      end

      def declare(*)
        raise Tokaido::Error, "a file that scripts of mod_mruby require has no procedures; put them into another one"
      end
    end
  end

  module ModMruby
    # Headers that CGI programs do not get, since they are secret or mean something else there.
    HIDDEN = %w[authorization proxy-authorization proxy content-type content-length].freeze

    def self.cgi_name(header) = "HTTP_#{header.upcase.tr("-", "_")}"
  end

  # The databases of the server, in the transaction of the request.
  def self.tx
    TRANSACTION
  end
end
