//! Fixes from later versions of mruby, for bugs in the sources that are built by default. An affected file is compiled from
//! a corrected copy. Each bug lets a Ruby program corrupt memory, or changes the meaning of a program. Bugs that can be
//! avoided in Ruby are, in tokaido-ruby's `ruby/builtin.rb`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::write;

/// A passage of a file, and its replacement.
struct Correction {
    file: &'static str,
    wrong: &'static str,
    right: &'static str,
}

const CORRECTIONS: &[Correction] = &[
    // If there are more arguments than registers, they are in an array, followed by the keywords: not at index `ci->n`.
    Correction {
        file: "src/vm.c",
        wrong: "    argv[1] = argv[ci->n];\n    argv[2] = blk;\n",
        right: "    if (ci->n < CALL_MAXARGS) argv[1] = argv[ci->n];\n    argv[2] = blk;\n",
    },
    // The garbage collector takes everything on the stack for values, so the first stack must be cleared like later ones.
    Correction {
        file: "src/vm.c",
        wrong: "  c->stend = c->stbase + STACK_INIT_SIZE;\n",
        right: "  c->stend = c->stbase + STACK_INIT_SIZE;\n  stack_clear(c->stbase, STACK_INIT_SIZE);\n",
    },
    // Copying an array may make it share its memory with the copy, and then it has no room of its own.
    Correction {
        file: "src/array.c",
        wrong: "      argv = ARY_PTR(r);\n",
        right: "      argv = ARY_PTR(r);\n      ary_modify(mrb, a);\n",
    },
    // A method that is called between two entries may delete the following ones. So the limit is
    // the number of used entries, not the number of live ones.
    Correction {
        file: "src/hash.c",
        wrong: "  EA_EACH((h_ar_p(h) ? ar_ea(h) : ht_ea(h)),                                  \\\n          \
                (h_ar_p(h) ? ar_size(h) : ht_size(h)),                              \\\n          entry_var)\n",
        right: "  EA_EACH_USED((h_ar_p(h) ? ar_ea(h) : ht_ea(h)),                             \\\n               \
                (h_ar_p(h) ? ar_ea_n_used(h) : ht_ea_n_used(h)), entry_var)           \\\n    \
                if (!entry_deleted_p(entry_var))\n",
    },
    // A fiber for which there was no memory has no calls whose environments could be unshared.
    Correction {
        file: "src/gc.c",
        wrong: "          while (ce <= ci) {\n",
        right: "          while (ce && ce <= ci) {\n",
    },
    // A one-expression method without parentheses has a block all the same, but there was no register for it.
    Correction {
        file: "mrbgems/mruby-compiler/core/y.tab.c",
        wrong: "  node *n = d->cdr->cdr;\n\n  n->car = locals_node(p);\n",
        right: "  node *n = d->cdr->cdr;\n\n  if (!a && p->locals) p->locals->car = cons(nsym(0), p->locals->car);\n  \
                n->car = locals_node(p);\n",
    },
    Correction {
        file: "mrbgems/mruby-compiler/core/y.tab.c",
        wrong: "  node *n = d->cdr->cdr->cdr;\n\n  n->car = locals_node(p);\n",
        right: "  node *n = d->cdr->cdr->cdr;\n\n  if (!a && p->locals) p->locals->car = cons(nsym(0), p->locals->car);\n  \
                n->car = locals_node(p);\n",
    },
];

/// The file to compile instead of a source file: the file itself, or its corrected copy below `out`.
pub(crate) fn corrected(root: &Path, file: &Path, out: &Path) -> PathBuf {
    let mine = CORRECTIONS.iter().filter(|correction| root.join(correction.file) == *file);
    let corrections: Vec<&Correction> = mine.collect();
    if corrections.is_empty() {
        return file.to_owned();
    }
    let mut text = fs::read_to_string(file).expect("the sources can be read");
    for Correction { file, wrong, right } in corrections {
        let times = text.matches(wrong).count();
        assert!(times == 1, "{file} has {times} passages that are to be corrected as one");
        text = text.replace(wrong, right);
    }
    let copy = out.join("corrected").join(file.file_name().expect("a file has a name"));
    write(&copy, text);
    copy
}
