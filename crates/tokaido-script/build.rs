//! Builds the one function that has to be written in C.

fn main() {
    println!("cargo::rerun-if-changed=c/stoppable.c");
    cc::Build::new().file("c/stoppable.c").warnings_into_errors(false).compile("tokaido_stoppable");
}
