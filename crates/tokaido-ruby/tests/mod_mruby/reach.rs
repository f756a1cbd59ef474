//! Scripts cannot reach what is not theirs.

use super::{Site, scripted};

/// Scripts that try to reach what is not theirs, or what the answer is made of.
#[test]
fn nothing_beyond_the_vm_can_be_reached() {
    let mut site = Site::one("Apache.rputs 'fine'");
    for reach in [
        "File.read('/etc/passwd')",
        "IO.popen('ls')",
        "Dir.entries('/')",
        "Process.pid",
        "TCPSocket.new('localhost', 1)",
        "UDPSocket.new",
        "Socket.tcp('localhost', 1)",
        "ObjectSpace.each_object { }",
        "ObjectSpace.count_objects",
        "ENV['PATH']",
        "`ls`",
        "system('ls')",
        "exec('ls')",
        "fork { }",
        "open('/etc/passwd')",
        "load '/etc/passwd'",
        "require '/etc/passwd'",
        "require '../secret'",
        "eval('1')",
        "binding",
        "instance_eval('1')",
        "Thread.new { }",
        "Signal.trap(:INT) { }",
        "exit",
        "abort",
        "sleep 1",
        "Apache.sleep 1",
        "Marshal.dump(1)",
        "GC::Profiler.enable",
        "RubyVm.new",
        "Tokaido.transact { }",
        "Tokaido::Database.new",
        "Tokaido::Database.allocate",
        "Tokaido::Core.run_compiled(99)",
        "Tokaido::Core.run_compiled(-1)",
        "Tokaido::Core.run_compiled('x')",
        "Tokaido::Core.prepare(1, Class, Class)",
        "Tokaido::Core.prepare_scripts(Class.new, Class.new)",
        "Tokaido::Core.visit = 5; Apache.rputs 'x'",
        "Tokaido::Core.visit = Object.new; GC.start; 'a' * 100; Apache::Request.new.uri",
        "Tokaido::Core.visit = nil; Apache.rputs 'x'",
        "Tokaido::Core.visit.instance_variable_set(:@headers_out, 5)",
        "Tokaido::Core.visit.instance_variable_set(:@code, 'x')",
    ] {
        let text = scripted(&format!("{reach}\n"));
        let mut own = Site::of(&[("m", &text)]);
        let answer = own.get();
        assert!(!answer.starts_with("200"), "{reach}: {answer}");
        assert_eq!(site.get(), "200\n\nfine", "{reach}");
    }
    // Odd but harmless.
    for (odd, answer) in [
        ("Tokaido::Core.visit.instance_variable_set(:@body, 5); Apache.rputs 'x'", "200\n\nx"),
        (
            "v = Tokaido::Core.visit; v.instance_variable_set(:@body, [1] * 1000); GC.start; Apache.rputs 'y'",
            "200\n\ny",
        ),
        ("t = +'a'; Apache.rputs t; t << 'b'; Apache.rputs t", "200\n\naab"),
        (
            "Apache.rputs :sym; Apache.rputs 5; Apache.rputs nil; Apache.echo [1]",
            "200\n\nsym5[1]\n",
        ),
    ] {
        assert_eq!(Site::one(odd).get(), answer, "{odd}");
    }
}

/// A request does not see what earlier scripts left behind.
#[test]
fn no_object_of_a_request_is_reached_from_the_next() {
    let mut site = Site::one(
        "before = Tokaido::Core.visit && Tokaido::Core.visit.instance_variables.inspect
$leak = Apache::Request.new
stale = (Kernel.instance_variable_get(:@kept).uri rescue 'refused')
Kernel.instance_variable_set(:@kept, Apache::Request.new)
Apache.rputs \"#{before} #{global_variables.include?(:$leak)} #{stale}\"",
    );
    let first = site.get();
    let second = site.get();
    assert!(first.ends_with("refused") && second.ends_with("refused"), "{first} {second}");
}
