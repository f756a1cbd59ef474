# `Apache::Request` and its parts.

class Apache
  # Belongs to one request, and is useless after it.
  class OfRequest
    def initialize
      @visit = Tokaido::ModMruby::Visit.current!
    end

    private

    def visit
      return @visit if @visit.equal?(Tokaido::ModMruby::Visit.current)
      raise Tokaido::Error, "this request is over; take #{self.class}.new in each request"
    end
  end

  class Request < OfRequest
    # Fields that can be set, by name, with their initial values.
    TEXTS = {
      the_request: ->(r, _) { "#{r.method} #{r.unparsed_uri} #{r.protocol}" },
      protocol: ->(_, _) { Tokaido::Core.request_field(5) },
      vlist_validator: nil,
      user: nil,
      ap_auth_type: nil,
      unparsed_uri: ->(_, _) { Tokaido::Core.request_field(4) },
      uri: ->(_, visit) { visit.path },
      filename: ->(_, visit) { visit.script.path },
      canonical_filename: ->(_, visit) { visit.script.path },
      path_info: ->(_, visit) { Request.rest_of(visit.script.pattern) },
      args: ->(r, _) { Request.query_of(r.unparsed_uri) },
      hostname: ->(_, visit) { Request.host_of(visit.headers_in["Host"]) },
      method: ->(_, _) { Tokaido::Core.request_field(0) },
      range: ->(_, visit) { visit.headers_in["Range"] },
      handler: ->(_, _) { "mruby-script" },
      content_encoding: nil,
    }.freeze
    private_constant :TEXTS if respond_to?(:private_constant)

    class << self
      # What the `*name` at the end of a route matched.
      def rest_of(pattern)
        name = pattern[/\*([^\/]+)\z/, 1] or return ""
        pair = Tokaido::Core.request_pairs(0).find { |other, _| other == name }
        "/#{pair && pair[1]}"
      end

      def query_of(target)
        query = Tokaido::Core.request_field(2)
        query == "" && !target.include?("?") ? nil : query
      end

      def host_of(host)
        host && host[/\A(\[[^\]]*\]|[^:]*)/].downcase
      end
    end

    TEXTS.each do |name, make|
      define_method(name) do
        fields = visit.fields
        fields.fetch(name) { fields[name] = make && make.call(self, visit) }
      end
      define_method("#{name}=") { |value| visit.fields[name] = value.to_s }
    end

    def content_type = visit.content_type
    def content_type=(value)
      visit.content_type = value.to_s
    end

    def status = visit.status
    def status=(value)
      raise TypeError, "a status is an integer, this is #{value.inspect}" unless value.is_a?(Integer)
      visit.status = value
    end

    # "404 Not Found"; only the number is sent to clients.
    def status_line = visit.fields[:status_line]
    def status_line=(line)
      number = line.to_s.to_i
      raise ArgumentError, "a status line begins with a number, this is #{line.inspect}" unless number >= 200 && number <= 599
      visit.status = number
      visit.fields[:status_line] = line.to_s
    end

    # The answer has its actual length, whatever is set here.
    def content_length = visit.fields[:content_length] || 0
    def content_length=(value)
      visit.fields[:content_length] = Integer(value)
    end

    def proxyreq = PROXYREQ_NONE
    def scheme = "http"
    def document_root = Tokaido::Core.document_root
    def body = (visit; method == "POST" ? Tokaido::Core.request_field(3) : nil)

    def method_number = METHODS.index(method) || M_INVALID
    def header_only = method == "HEAD" ? 1 : 0
    def proto_num = protocol == "HTTP/1.1" ? 1001 : 1000
    def chunked = visit.headers_in["Transfer-Encoding"] ? 1 : 0
    def response_time = (Tokaido::TRANSACTION.now_ms - Tokaido::Core.request_field(10)) / 1000.0
    def assbackwards = 0
    def read_body = 0
    def read_chunked = 0
    def used_path_info = 2
    def eos_sent = 0
    def no_cache = 0
    def no_local_copy = 0
    def main? = false
    def sub_request? = false
    def prev? = false
    def internal_redirect? = false
    def next? = false
    def external_redirect? = false

    def error_log(level, message)
      Apache.log(level, message)
      message
    end

    alias log error_log

    def notes = @notes ||= Notes.new
    def headers_in = @headers_in ||= Headers_in.new
    def headers_out = @headers_out ||= Headers_out.new
    def finfo = @finfo ||= Finfo.new
  end

  refuse Request, "no request is passed on to another server", :reverse_proxy, :proxyreq=
  refuse Request, "the document root is the operator's to choose", :document_root=
  refuse Request, "the log is the operator's to choose", :error_log_into
  refuse Request, "a request has one handler", :run_handler

  class Notes < OfRequest
    def [](name) = visit.notes[name]
    def []=(name, value)
      visit.notes[name] = value
    end
  end

  class Headers_in < OfRequest
    def [](name) = visit.headers_in[name]
    def []=(name, value)
      visit.headers_in[name] = value
    end

    def all = visit.headers_in.to_h
    def user_agent = self["User-Agent"]
    def referer = self["Referer"]
  end

  class Headers_out < OfRequest
    def [](name) = visit.headers_out[name]

    # A cookie is added to those that are already set.
    def []=(name, value)
      name.to_s.downcase == "set-cookie" ? visit.headers_out.add(name, value) : visit.headers_out[name] = value
    end

    def all = visit.headers_out.to_h
  end

  # The CGI environment of the request, and what scripts add to it.
  class Env < OfRequest
    def [](name) = visit.env[name]
    def []=(name, value)
      visit.env[name] = value
    end

    def all = visit.env.to_h
  end

  # The user name and password that a client sent, in the phase authn_check_password.
  class AuthnProvider < OfRequest
    AUTH_DENIED, AUTH_GRANTED, AUTH_USER_FOUND, AUTH_USER_NOT_FOUND, AUTH_GENERAL_ERROR = 0, 1, 2, 3, 4

    def user = credential(:user)
    def password = credential(:password)
    def realm = credential(:realm)

    private

    def credential(name)
      given = visit.credentials or raise Tokaido::Error, "Apache::AuthnProvider is for the phase authn_check_password"
      given[name]
    end
  end

  refuse AuthnProvider, "digests of passwords are not asked for; check the password", :rethash, :rethash=

  # The body on its way to the client, in the phase output_filter.
  class Filter < OfRequest
    def flatten = pieces.join
    def length = flatten.bytesize
    def empty? = flatten.empty?

    def cleanup
      pieces.clear
      0
    end

    alias destroy cleanup

    def insert_tail(text)
      pieces.push(text.to_s)
      self
    end

    def insert_head(text)
      pieces.unshift(text.to_s)
      self
    end

    def puts(text)
      pieces.push(text.to_s)
      0
    end

    def insert_eos = self

    # Makes the server send its own page for a status.
    def error_create(status)
      cleanup
      visit.fail_filter(status)
      self
    end

    def body
      data = flatten
      cleanup
      data
    end

    def body=(text)
      insert_tail(text)
    end

    private

    def pieces
      visit.filter or raise Tokaido::Error, "Apache::Filter is for the phase output_filter"
    end
  end

  refuse Filter, "a body is a text here, and no list of buckets", :first_bucket
  refuse Filter, "a body comes from no file here", :uid, :gid
end
