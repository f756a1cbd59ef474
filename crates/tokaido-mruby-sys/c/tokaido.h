/* What tokaido-ruby sees of mruby. Exceptions are jumps over C frames. Whatever may raise does so within a protected
 * call that begins and ends here, so that no jump crosses a Rust frame. */
#ifndef TOKAIDO_H
#define TOKAIDO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <mruby.h>
#include "look.h"

/* The same as in src/items.rs. */
enum tokaido_kind {
  TOKAIDO_NIL,
  TOKAIDO_FALSE,
  TOKAIDO_TRUE,
  TOKAIDO_INTEGER,
  TOKAIDO_NUMBER,
  TOKAIDO_BYTES,
  /* `integer` values follow. */
  TOKAIDO_ARRAY,
  /* `integer` pairs of key and value follow. */
  TOKAIDO_MAP,
  /* A database, given by its number. */
  TOKAIDO_DATABASE,
};

/* A value, or the head of one. */
typedef struct tokaido_item {
  int32_t kind;
  int64_t integer;
  double number;
  const char *bytes;
  size_t len;
} tokaido_item;

/* The functions of Rust that C calls. None of these unwinds. */
typedef struct tokaido_calls {
  /* Runs an operation of c/methods.c. Returns 0, and an answer that is valid until the next call; otherwise `answer`
   * has the message of an error. */
  int (*native)(void *context, int32_t operation, int64_t self, const tokaido_item *arguments, size_t count,
                const tokaido_item **answer);
  /* Begins a value that is passed item by item. */
  void (*gather_begin)(void *context);
  /* Takes the next item; returns 0, or 1 if it exceeds the limits. */
  int (*gather)(void *context, const tokaido_item *item);
} tokaido_calls;

/* The outcome of a call. src/vm.rs has the same. */
enum tokaido_outcome {
  /* The result was gathered. */
  TOKAIDO_DONE,
  /* A report of the error was gathered: see `Tokaido::Core.report`. */
  TOKAIDO_RAISED,
  /* There was an error that could not be reported. */
  TOKAIDO_UNREPORTED,
  /* Nothing was run: more lines are needed. */
  TOKAIDO_UNFINISHED,
};

/* Names that each call looks up, as symbols. c/vm.c has their texts. */
enum tokaido_name {
  TOKAIDO_PROCEDURES,
  TOKAIDO_INITIALIZE,
  TOKAIDO_LAST_MATCH,
  TOKAIDO_STATUS,
  TOKAIDO_SCRIPT,
  TOKAIDO_COMPILED,
  TOKAIDO_CODE,
  TOKAIDO_BODY,
  TOKAIDO_FIELDS,
  TOKAIDO_CONTENT_TYPE,
  TOKAIDO_HEADERS_OUT,
  TOKAIDO_ERR_HEADERS_OUT,
  TOKAIDO_FILTER,
  TOKAIDO_ANSWERED,
  TOKAIDO_HAS_PHASES,
  TOKAIDO_HAS_GLOBALS,
  TOKAIDO_NAMES,
};

/* Number of size classes of small blocks that are kept. */
#define TOKAIDO_BLOCK_CLASSES 16

typedef struct tokaido_vm {
  mrb_state *mrb;
  const tokaido_calls *calls;
  void *context;
  /* Bytes that the VM has allocated, and its limit. */
  size_t used, limit;
  /* Freed blocks, by size class, and their total size in bytes. */
  struct tokaido_block *blocks[TOKAIDO_BLOCK_CLASSES];
  size_t kept_bytes;
  /* It was refused memory a second time, after collecting garbage. */
  bool is_refused;
  /* It was refused memory, and is collecting garbage. */
  bool is_collecting;
  /* Nothing may raise while the compiler runs, which could not handle it. */
  bool is_compiling;
  mrb_value core;
  /* The last method called on `core`, by the address of its name, and its symbol. */
  const char *method;
  mrb_sym method_symbol;
  struct RObject *stop;
  /* The local variables of the typed lines, and how many of their values are on the stack;
   * NULL before the first line. */
  struct mrb_ccontext *lines;
  mrb_int kept;
  /* The classes of objects that C code creates. */
  struct RClass *database_class, *error_class, *request_class, *response_class;
  /* The class whose `initialize` does nothing. */
  struct RClass *basic_class;
  mrb_sym names[TOKAIDO_NAMES];
  /* In a VM for mod_mruby scripts: the class of requests being answered, and the request that is being answered, or
   * nil. */
  struct RClass *visit_class;
  mrb_value visit;
  /* The transaction that procedures get, or nil before it is set. */
  mrb_value transaction;
} tokaido_vm;

/* The VM that runs on this thread. */
extern _Thread_local tokaido_vm *tokaido_current;

tokaido_vm *tokaido_open(const tokaido_calls *calls, void *context, size_t limit);
void tokaido_close(tokaido_vm *vm);
void tokaido_set_limit(tokaido_vm *vm, size_t limit);
int tokaido_load(tokaido_vm *vm, const char *text, size_t len, const char *path);
/* The method's name must stay at its address as long as the program runs. */
int tokaido_call(tokaido_vm *vm, const char *method, const tokaido_item *arguments, size_t count);
/* Calls a procedure by its index. A handler also gets the request and the response, and its answer is sent. */
int tokaido_run_procedure(tokaido_vm *vm, size_t place, bool is_handler, const tokaido_item *arguments, size_t count);
/* Answers a request with a mod_mruby script, given by its index. */
int tokaido_answer(tokaido_vm *vm, size_t place);
/* Runs a typed line. Later lines see its local variables.
 * The gathered value is a text that shows the line's value. */
int tokaido_type(tokaido_vm *vm, const char *text, size_t len, const char *path);
/* Whether a line has defined a local variable of this name. */
bool tokaido_has_local(tokaido_vm *vm, const char *name);
void tokaido_stop(tokaido_vm *vm);
void tokaido_go_on(tokaido_vm *vm);
bool tokaido_is_refused(const tokaido_vm *vm);
bool tokaido_is_sound(const tokaido_vm *vm);
size_t tokaido_used(const tokaido_vm *vm);
size_t tokaido_symbols(const tokaido_vm *vm);
int tokaido_arena(const tokaido_vm *vm);
size_t tokaido_live(tokaido_vm *vm);

/* For the files in this folder. */
void tokaido_find_stack(void);
void tokaido_free_blocks(tokaido_vm *vm);
void tokaido_define(mrb_state *mrb);
void tokaido_respond(mrb_state *mrb, mrb_value response, mrb_value body);
void tokaido_respond_bare(mrb_state *mrb, mrb_value body);
mrb_value tokaido_answer_with(mrb_state *mrb, mrb_value script);
mrb_value tokaido_run_compiled(mrb_state *mrb, mrb_value number);
void tokaido_define_scripts(mrb_state *mrb, struct RClass *core);
mrb_value tokaido_compile(mrb_state *mrb, const char *text, size_t len, const char *path);
mrb_value tokaido_run(mrb_state *mrb, mrb_value procedure);
mrb_value tokaido_build(mrb_state *mrb, const tokaido_item **items);
void tokaido_walk(mrb_state *mrb, mrb_value value, int depth);
bool tokaido_item_of(mrb_state *mrb, mrb_value value, tokaido_item *item);

#endif
