# dialect: mod_mruby
# route: /bench/mod_mruby/hello
Apache.rputs "hello, world\n"
