//! The C files that are generated during the build: the compiled Ruby parts of the library, and the
//! code that initialises them and the gems.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{GEMS, Mruby, run, write};

/// Writes the files, and returns their paths.
pub(crate) fn write_all(mruby: &Mruby, mrbc: &Path) -> Vec<PathBuf> {
    let mut files = vec![write_core(mruby, mrbc)];
    for gem in GEMS {
        files.push(write_gem(mruby, mrbc, gem));
    }
    files.push(write_start(mruby));
    files
}

/// The Ruby part of the core.
fn write_core(mruby: &Mruby, mrbc: &Path) -> PathBuf {
    let mut text = compiled(mrbc, "mrblib_proc", &mruby.files("mrblib", "rb"));
    text.push_str(
        "void mrb_init_mrblib(mrb_state *mrb) {\n\
         mrblib_proc_init_syms(mrb);\n\
         mrb_load_proc(mrb, mrblib_proc);\n}\n",
    );
    let file = mruby.out.join("mrblib.c");
    write(&file, text);
    file
}

/// The Ruby part of a gem, and the code that initialises the gem.
fn write_gem(mruby: &Mruby, mrbc: &Path, gem: &str) -> PathBuf {
    let name = gem.replace('-', "_");
    let ruby = mruby.files(&format!("{}/mrblib", Mruby::gem(gem)), "rb");
    let mut text = "#include <mruby.h>\n".to_owned();
    let mut start = String::new();
    if mruby.has_c(gem) {
        let _ = writeln!(text, "void mrb_mruby_{name}_gem_init(mrb_state *mrb);");
        let _ = writeln!(start, "mrb_mruby_{name}_gem_init(mrb);");
    }
    if !ruby.is_empty() {
        let procedure = format!("gem_mrblib_mruby_{name}_proc");
        text.push_str(&compiled(mrbc, &procedure, &ruby));
        // As with rake: symbols first, since the C part may need them.
        start.insert_str(0, &format!("{procedure}_init_syms(mrb);\n"));
        let _ = writeln!(start, "mrb_load_proc(mrb, {procedure});");
    }
    let _ = writeln!(text, "void tokaido_start_{name}(mrb_state *mrb) {{\n{start}}}");
    let file = mruby.out.join(format!("gems/{name}.c"));
    write(&file, text);
    file
}

/// The code that initialises all gems, and finalises those that need it.
fn write_start(mruby: &Mruby) -> PathBuf {
    let (mut declarations, mut starts, mut ends) = (String::new(), String::new(), String::new());
    for gem in GEMS {
        let name = gem.replace('-', "_");
        let _ = writeln!(declarations, "void tokaido_start_{name}(mrb_state *mrb);");
        let _ = writeln!(starts, "  start(mrb, tokaido_start_{name}, ai);");
        if mruby.has_c(gem) {
            let _ = writeln!(declarations, "void mrb_mruby_{name}_gem_final(mrb_state *mrb);");
            ends.insert_str(0, &format!("  mrb_mruby_{name}_gem_final(mrb);\n"));
        }
    }
    let text = format!(
        "#include <mruby.h>\n#include <mruby/error.h>\n#include <mruby/proc.h>\n{declarations}\
         static void start(mrb_state *mrb, void (*gem)(mrb_state *), int ai) {{\n\
         \x20 gem(mrb);\n\
         \x20 mrb_gc_arena_restore(mrb, ai);\n\
         \x20 mrb_vm_ci_env_clear(mrb, mrb->c->cibase);\n\
         \x20 if (mrb->exc) mrb_exc_raise(mrb, mrb_obj_value(mrb->exc));\n}}\n\
         static void end(mrb_state *mrb) {{\n{ends}}}\n\
         void mrb_init_mrbgems(mrb_state *mrb) {{\n  int ai = mrb_gc_arena_save(mrb);\n{starts}\
         \x20 mrb_state_atexit(mrb, end);\n}}\n"
    );
    let file = mruby.out.join("gems/start.c");
    write(&file, text);
    file
}

/// Ruby files, compiled to a C structure named `name`.
fn compiled(mrbc: &Path, name: &str, files: &[PathBuf]) -> String {
    let text =
        run(Command::new(mrbc).arg(format!("-B{name}")).args(["-o-", "-S", "-s"]).args(files));
    String::from_utf8(text).expect("mrbc writes C")
}
