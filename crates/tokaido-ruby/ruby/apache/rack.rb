# `run app`: a Rack application answers the request.

module Kernel
  def run(application)
    request, connection = Apache::Request.new, Apache::Connection.new
    status, headers, body = application.call(Tokaido::ModMruby.rack_env(request, connection))
    unless headers.is_a?(Hash) || headers.is_a?(Array)
      raise TypeError, "the headers of a response are a hash or an array of pairs, these are #{headers.class}"
    end
    headers.each { |name, value| request.headers_out[name] = value }
    raise TypeError, "the body of a response is an array, this is #{body.class}" unless body.is_a?(Array)
    body.each { |piece| Apache.rputs(piece) }
    request.status = status.to_i
    Apache.return(Apache::OK)
  end
end

module Tokaido
  module ModMruby
    def self.rack_env(request, connection)
      env = {
        "REQUEST_METHOD" => request.method, "SCRIPT_NAME" => "", "PATH_INFO" => request.uri,
        "REQUEST_URI" => request.unparsed_uri, "QUERY_STRING" => request.args, "SERVER_NAME" => request.hostname,
        "SERVER_ADDR" => connection.local_ip, "SERVER_PORT" => connection.local_port.to_s,
        "REMOTE_ADDR" => connection.remote_ip, "REMOTE_PORT" => connection.remote_port.to_s,
        "rack.url_scheme" => request.scheme, "rack.multithread" => false, "rack.multiprocess" => true,
        "rack.run_once" => false, "rack.hijack?" => false, "server.name" => server_name,
        "server.version" => Apache.server_version,
      }
      # Not the header `Proxy`: programs would mistake its variable for the operator's.
      request.headers_in.all.each { |name, value| env[cgi_name(name)] = value unless name == "Proxy" }
      env
    end
  end
end
