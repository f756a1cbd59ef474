# What mod_mruby scripts can know about the server, the connection and files.

class Apache
  class Connection < OfRequest
    def remote_ip = field(6)
    def remote_port = field(7)
    def remote_host = (visit; nil)
    def remote_logname = (visit; nil)
    def local_ip = field(8)
    def local_port = field(9)
    def local_host = (visit; nil)

    private

    def field(number)
      visit
      Tokaido::Core.request_field(number)
    end
  end

  refuse Connection, "it tells of Apache's own connections", :keepalives, :data_in_input_filters

  class Server < OfRequest
    def document_root = Tokaido::Core.document_root
    def hostname = Request.host_of(visit.headers_in["Host"]) || "localhost"
    def redirect_server_scheme = "http"
    def redirect_server_port = (visit; Tokaido::Core.request_field(9))
    def is_virtual = 0
    def keep_alive = 1
  end

  refuse Server, "it is of Apache's own configuration",
         :error_fname, :error_fname=, :loglevel, :loglevel=, :path, :pathlen, :admin, :defn_name, :defn_line_number,
         :keep_alive_max, :keep_alive_timeout, :limit_req_line, :limit_req_fieldsize, :limit_req_fields, :timeout, :timeout=

  # How busy the server is. A worker of Apache serves one connection, so connections count as workers here.
  class Scoreboard
    def pid = figures[0]
    def uptime = figures[1]
    def restart_time = Tokaido::TRANSACTION.now_ms / 1000 - uptime
    def total_access = figures[2]
    def busy_worker = figures[3]
    def idle_worker = thread_limit - busy_worker
    def server_limit = 1
    def thread_limit = figures[4]

    # Processor time of the server since it started, in percent of one processor.
    def cpu_load = uptime > 0 ? figures[5] / uptime * 100 : 0.0

    # The machine's load averages over one, five and fifteen minutes.
    def loadavg = figures[6, 3]

    private

    def figures = @figures ||= Tokaido::Core.figures
  end

  refuse Scoreboard, "it tells of Apache's own processes", :status, :counter, :access_counter
  refuse Scoreboard, "the bytes of answers are not counted", :total_kbyte

  # The file named by the request's filename, below the document root.
  class Finfo < OfRequest
    APR_NOFILE, APR_REG, APR_DIR, APR_CHR, APR_BLK, APR_PIPE, APR_LNK, APR_SOCK, APR_UNKFILE = 0, 1, 2, 3, 4, 5, 6, 7, 127

    KINDS = { 0o100000 => APR_REG, 0o040000 => APR_DIR, 0o020000 => APR_CHR, 0o060000 => APR_BLK, 0o010000 => APR_PIPE,
              0o140000 => APR_SOCK }.freeze
    private_constant :KINDS if respond_to?(:private_constant)

    def filetype = stat ? KINDS.fetch(stat[0] & 0o170000, APR_UNKFILE) : APR_NOFILE
    def mode = figure(0) & 0o7777

    # The permissions in Apache's format: four bits each for owner, group and others.
    def permission
      bits = mode
      (bits & 0o700) << 2 | (bits & 0o070) << 1 | bits & 0o007
    end

    def user = figure(1)
    def group = figure(2)
    def device = figure(3)
    def inode = figure(4)
    def nlink = figure(5)
    def size = figure(6).to_f
    def csize = figure(7).to_f
    # Times are microseconds since 1970.
    def atime = figure(8).to_f
    def mtime = figure(9).to_f
    def ctime = figure(10).to_f

    private

    def stat
      return @stat if @read
      @read = true
      @stat = Tokaido::Core.stat(visit.fields[:filename] || visit.script.path)
    end

    def figure(place) = stat ? stat[place] : 0
  end
end
