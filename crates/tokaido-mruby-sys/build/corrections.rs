//! Mistakes of mruby's that later versions have corrected, in the sources that we build by default: a file with one is
//! compiled from a copy without it. Each is a matter of memory that a program in Ruby could reach, or has a program
//! mean something else; what can be avoided in Ruby is, in tokaido-ruby's `ruby/builtin.rb`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::write;

/// A passage of a file, and what stands there instead.
struct Correction {
    file: &'static str,
    wrong: &'static str,
    right: &'static str,
}

const CORRECTIONS: &[Correction] = &[
    // More arguments than registers stand in an array, and keywords behind that: not at the place of that number.
    Correction {
        file: "src/vm.c",
        wrong: "    argv[1] = argv[ci->n];\n    argv[2] = blk;\n",
        right: "    if (ci->n < CALL_MAXARGS) argv[1] = argv[ci->n];\n    argv[2] = blk;\n",
    },
    // The garbage collector takes whatever stands on the stack for a value, so the first stack is cleared as later ones are.
    Correction {
        file: "src/vm.c",
        wrong: "  c->stend = c->stbase + STACK_INIT_SIZE;\n",
        right: "  c->stend = c->stbase + STACK_INIT_SIZE;\n  stack_clear(c->stbase, STACK_INIT_SIZE);\n",
    },
    // To copy an array may make it share its memory with the copy, and then it has no room of its own.
    Correction {
        file: "src/array.c",
        wrong: "      argv = ARY_PTR(r);\n",
        right: "      argv = ARY_PTR(r);\n      ary_modify(mrb, a);\n",
    },
    // A method that is called between two entries may delete those that follow, so the end is that of the entries and
    // not their number.
    Correction {
        file: "src/hash.c",
        wrong: "  EA_EACH((h_ar_p(h) ? ar_ea(h) : ht_ea(h)),                                  \\\n          \
                (h_ar_p(h) ? ar_size(h) : ht_size(h)),                              \\\n          entry_var)\n",
        right: "  EA_EACH_USED((h_ar_p(h) ? ar_ea(h) : ht_ea(h)),                             \\\n               \
                (h_ar_p(h) ? ar_ea_n_used(h) : ht_ea_n_used(h)), entry_var)           \\\n    \
                if (!entry_deleted_p(entry_var))\n",
    },
    // A fiber for which there was no memory has no calls, whose environments could be unshared.
    Correction {
        file: "src/gc.c",
        wrong: "          while (ce <= ci) {\n",
        right: "          while (ce && ce <= ci) {\n",
    },
    // A method of one expression that has no parentheses has a block all the same, for which there was no register.
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

/// The file to compile in the place of one of the sources: itself, or its copy below `out`.
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
