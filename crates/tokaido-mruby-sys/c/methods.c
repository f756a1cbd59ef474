/* The classes and methods that are written in C: each passes its arguments to Rust, and returns Rust's answer. The
 * rest of the classes is Ruby, in tokaido-ruby's `ruby/`. */
#include "tokaido.h"
#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/data.h>
#include <mruby/error.h>
#include <mruby/hash.h>
#include <mruby/proc.h>
#include <mruby/string.h>
#include <mruby/variable.h>
#include "database.h"

/* Maximum number of arguments of an operation. */
#define ARGUMENTS_MAX 10

/* The same as in crates/tokaido-ruby/src/operation.rs. */
enum operation {
  GET, HAS, RECORD, PUT, PUT_WITH, SWAP, DELETE, INCREMENT, INCREMENT_FLOAT, APPEND, GET_ALL, EXPIRE, STATISTICS, CLEAR, PAGE,
  OPEN, DROP, NOW, WRITABLE, WRITES, LOG, SOURCE, ADD,
  REQUEST_FIELD, REQUEST_PAIRS, HEADER_SET, HEADER_GET, WRITE, RESPOND,
  JSON_PARSE,
  BEGIN_TRANSACTION, COMMIT, ROLL_BACK, PRINT, REGEXP_COMPILE, REGEXP_SEARCH,
  RESPOND_BARE, DOCUMENT_ROOT, STAT, FIGURES,
  HASH, LIST, SET, SORTED_SET, CALL_FAILED,
  /* These take the gathered value. */
  GET_MANY, COMMAND, CALL, STREAM, JSON_GENERATE, RESPOND_JSON,
};

static const struct mrb_data_type database_type = { "Tokaido::Database", NULL };

mrb_value
tokaido_database(mrb_state *mrb, int64_t number)
{
  tokaido_vm *vm = (tokaido_vm*)mrb->ud;
  /* Offset, since an object that was not created here holds 0. */
  return mrb_obj_value(mrb_data_object_alloc(mrb, vm->database_class, (void*)(intptr_t)(number + 2), &database_type));
}

/* The number of a database; less than -1 if it is not one. */
static int64_t
number_of(mrb_value self)
{
  if (!mrb_data_p(self) || DATA_TYPE(self) != &database_type) return -2;
  return (int64_t)(intptr_t)DATA_PTR(self) - 2;
}

static mrb_value
ask(mrb_state *mrb, mrb_value self, int operation, const tokaido_item *items, mrb_int count)
{
  tokaido_vm *vm = (tokaido_vm*)mrb->ud;
  const tokaido_item *answer = NULL;
  if (vm->calls->native(vm->context, operation, number_of(self), items, (size_t)count, &answer) != 0) {
    mrb_exc_raise(mrb, mrb_exc_new(mrb, vm->error_class, answer->bytes, (mrb_int)answer->len));
  }
  return tokaido_build(mrb, &answer);
}

static mrb_value
native(mrb_state *mrb, mrb_value self, int operation, mrb_int least, mrb_int most)
{
  const mrb_value *arguments;
  mrb_int count;
  tokaido_item items[ARGUMENTS_MAX];
  /* They are read in place, on the stack: nothing runs meanwhile that could move it. */
  if (mrb->c->ci->nk == 0) {
    count = mrb_get_argc(mrb);
    arguments = mrb_get_argv(mrb);
  }
  else {
    mrb_get_args(mrb, "*!", &arguments, &count);
  }
  if (count < least || count > most) mrb_argnum_error(mrb, count, (int)least, (int)most);
  for (mrb_int i = 0; i < count; i++) {
    if (!tokaido_item_of(mrb, arguments[i], &items[i])) {
      mrb_raisef(mrb, E_TYPE_ERROR, "a string, symbol or number is expected, this is %T", arguments[i]);
    }
  }
  return ask(mrb, self, operation, items, count);
}

/* An operation on one value of any kind. */
static mrb_value
native_of_value(mrb_state *mrb, mrb_value self, int operation)
{
  tokaido_vm *vm = (tokaido_vm*)mrb->ud;
  mrb_value value;
  mrb_get_args(mrb, "o", &value);
  vm->calls->gather_begin(vm->context);
  tokaido_walk(mrb, value, 0);
  return ask(mrb, self, operation, NULL, 0);
}

#define METHOD(name, operation, least, most) \
  static mrb_value name(mrb_state *mrb, mrb_value self) { return native(mrb, self, operation, least, most); }
#define METHOD_OF_VALUE(name, operation) \
  static mrb_value name(mrb_state *mrb, mrb_value self) { return native_of_value(mrb, self, operation); }

METHOD(db_get, GET, 1, 1)
METHOD(db_has, HAS, 1, 1)
METHOD(db_record, RECORD, 1, 1)
METHOD(db_put, PUT, 2, 2)
METHOD(db_put_with, PUT_WITH, 6, 6)
METHOD(db_swap, SWAP, 3, 3)
METHOD(db_delete, DELETE, 1, 1)
METHOD(db_increment, INCREMENT, 1, 2)
METHOD(db_increment_float, INCREMENT_FLOAT, 2, 2)
METHOD(db_append, APPEND, 2, 2)
METHOD(db_expire, EXPIRE, 2, 2)
METHOD(db_statistics, STATISTICS, 0, 0)
METHOD(db_clear, CLEAR, 0, 0)
METHOD(db_page, PAGE, 8, 8)
METHOD(db_hash, HASH, 2, 4)
METHOD(db_list, LIST, 2, 6)
METHOD(db_set, SET, 2, 4)
METHOD(db_sorted_set, SORTED_SET, 2, 10)
METHOD_OF_VALUE(db_get_many, GET_MANY)
METHOD_OF_VALUE(db_stream, STREAM)
METHOD(db_get_all, GET_ALL, 1, 1)

METHOD(core_open, OPEN, 1, 1)
METHOD(core_drop, DROP, 1, 1)
METHOD(core_now, NOW, 0, 0)
METHOD(core_writable, WRITABLE, 0, 0)
METHOD(core_writes, WRITES, 0, 0)
METHOD(core_log, LOG, 2, 2)
METHOD(core_source, SOURCE, 1, 1)
METHOD(core_add, ADD, 6, 6)
METHOD(core_request_field, REQUEST_FIELD, 1, 1)
METHOD(core_request_pairs, REQUEST_PAIRS, 1, 1)
METHOD(core_header_set, HEADER_SET, 3, 3)
METHOD(core_header_get, HEADER_GET, 1, 1)
METHOD(core_write, WRITE, 1, 1)
METHOD(core_respond, RESPOND, 2, 2)
METHOD(core_json_parse, JSON_PARSE, 1, 1)
METHOD(core_begin_transaction, BEGIN_TRANSACTION, 1, 1)
METHOD(core_commit, COMMIT, 0, 0)
METHOD(core_roll_back, ROLL_BACK, 0, 0)
METHOD(core_print, PRINT, 2, 2)
METHOD(core_regexp_compile, REGEXP_COMPILE, 2, 2)
METHOD(core_regexp_search, REGEXP_SEARCH, 3, 3)
METHOD(core_respond_bare, RESPOND_BARE, 2, 2)
METHOD(core_document_root, DOCUMENT_ROOT, 0, 0)
METHOD(core_stat, STAT, 1, 1)
METHOD(core_figures, FIGURES, 0, 0)
METHOD(core_call_failed, CALL_FAILED, 1, 1)
METHOD_OF_VALUE(core_command, COMMAND)
METHOD_OF_VALUE(core_call_elsewhere, CALL)
METHOD_OF_VALUE(core_json_generate, JSON_GENERATE)
METHOD_OF_VALUE(core_respond_json, RESPOND_JSON)

/* Answers with what a handler returned, and with the status that the response was given. */
void
tokaido_respond(mrb_state *mrb, mrb_value response, mrb_value body)
{
  tokaido_vm *vm = (tokaido_vm*)mrb->ud;
  mrb_value status = mrb_iv_get(mrb, response, vm->names[TOKAIDO_STATUS]);
  if (mrb_nil_p(status)) status = mrb_int_value(mrb, 200);
  if (!mrb_string_p(body) || !mrb_integer_p(status)) {
    mrb_value arguments[] = { response, body };
    mrb_funcall_argv(mrb, vm->core, mrb_intern_lit(mrb, "respond_with"), 2, arguments);
    return;
  }
  tokaido_item items[2];
  tokaido_item_of(mrb, status, &items[0]);
  tokaido_item_of(mrb, body, &items[1]);
  ask(mrb, vm->core, RESPOND, items, 2);
}

/* Answers with only a body: a string, or nil for none. */
void
tokaido_respond_bare(mrb_state *mrb, mrb_value body)
{
  tokaido_vm *vm = (tokaido_vm*)mrb->ud;
  if (mrb_nil_p(body)) body = mrb_str_new_lit(mrb, "");
  tokaido_item items[2];
  tokaido_item_of(mrb, mrb_int_value(mrb, 200), &items[0]);
  tokaido_item_of(mrb, body, &items[1]);
  ask(mrb, vm->core, RESPOND_BARE, items, 2);
}

/* `prepare(transaction, requests, responses)`: the arguments of procedures, the last two as classes. */
static mrb_value
core_prepare(mrb_state *mrb, mrb_value self)
{
  tokaido_vm *vm = (tokaido_vm*)mrb->ud;
  mrb_value transaction;
  (void)self;
  if (vm->request_class != NULL) mrb_raise(mrb, vm->error_class, "procedures are prepared once");
  mrb_get_args(mrb, "occ", &transaction, &vm->request_class, &vm->response_class);
  vm->transaction = transaction;
  mrb_gc_register(mrb, mrb_obj_value(vm->request_class));
  mrb_gc_register(mrb, mrb_obj_value(vm->response_class));
  mrb_gc_register(mrb, transaction);
  return mrb_nil_value();
}

/* `run_file(text, path)`: runs the text as the top level of a file. */
static mrb_value
core_run_file(mrb_state *mrb, mrb_value self)
{
  mrb_value text;
  const char *path;
  (void)self;
  mrb_get_args(mrb, "Sz", &text, &path);
  return tokaido_run(mrb, tokaido_compile(mrb, RSTRING_PTR(text), (size_t)RSTRING_LEN(text), path));
}

/* Where compiled files are kept: Ruby methods cannot find a variable with this name. */
#define COMPILED (((tokaido_vm*)mrb->ud)->names[TOKAIDO_COMPILED])

/* `compile(text, path)`: compiles a file, and returns its number for `run_compiled`. */
static mrb_value
core_compile(mrb_state *mrb, mrb_value self)
{
  mrb_value text, kept;
  const char *path;
  mrb_get_args(mrb, "Sz", &text, &path);
  mrb_value compiled = tokaido_compile(mrb, RSTRING_PTR(text), (size_t)RSTRING_LEN(text), path);
  kept = mrb_iv_get(mrb, self, COMPILED);
  if (mrb_nil_p(kept)) {
    kept = mrb_ary_new(mrb);
    mrb_iv_set(mrb, self, COMPILED, kept);
  }
  mrb_ary_push(mrb, kept, compiled);
  return mrb_int_value(mrb, RARRAY_LEN(kept) - 1);
}

/* Runs a compiled file by its number, as the top level of the file. It may be run any number of times. */
mrb_value
tokaido_run_compiled(mrb_state *mrb, mrb_value number)
{
  mrb_value kept = mrb_iv_get(mrb, ((tokaido_vm*)mrb->ud)->core, COMPILED);
  if (mrb_nil_p(kept) || !mrb_integer_p(number) || mrb_integer(number) < 0 || mrb_integer(number) >= RARRAY_LEN(kept)) {
    mrb_raise(mrb, E_ARGUMENT_ERROR, "nothing was compiled under that number");
  }
  return tokaido_run(mrb, mrb_ary_ref(mrb, kept, mrb_integer(number)));
}

/* `run_compiled(number)`. */
static mrb_value
core_run_compiled(mrb_state *mrb, mrb_value self)
{
  mrb_value number;
  (void)self;
  mrb_get_args(mrb, "o", &number);
  return tokaido_run_compiled(mrb, number);
}

/* `remove_global(name)`: removes a global variable. */
static mrb_value
core_remove_global(mrb_state *mrb, mrb_value self)
{
  mrb_sym name;
  (void)self;
  mrb_get_args(mrb, "n", &name);
  mrb_gv_remove(mrb, name);
  return mrb_nil_value();
}

/* `remember(values)`: sets the global variables of a match. */
static mrb_value
core_remember(mrb_state *mrb, mrb_value self)
{
  static const char names[][3] = {
    "$~", "$&", "$`", "$'", "$+", "$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9",
  };
  mrb_value values;
  (void)self;
  mrb_get_args(mrb, "A", &values);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    mrb_gv_set(mrb, mrb_intern_static(mrb, names[i], 2), mrb_ary_ref(mrb, values, (mrb_int)i));
  }
  return mrb_nil_value();
}

typedef struct {
  const char *name;
  mrb_func_t function;
} entry;

static const entry database_methods[] = {
  { "get", db_get }, { "[]", db_get }, { "key?", db_has }, { "__record", db_record }, { "[]=", db_put },
  { "__put", db_put }, { "__put_with", db_put_with }, { "compare_and_set", db_swap }, { "delete", db_delete },
  { "increment", db_increment }, { "increment_float", db_increment_float }, { "append", db_append },
  { "__expire", db_expire }, { "__statistics", db_statistics }, { "clear", db_clear }, { "__page", db_page },
  { "get_many", db_get_many }, { "get_all", db_get_all }, { "__hash", db_hash }, { "__list", db_list }, { "__set", db_set },
  { "__sorted_set", db_sorted_set }, { "__stream", db_stream },
};

static const entry core_methods[] = {
  { "open", core_open }, { "drop", core_drop }, { "now", core_now }, { "writable", core_writable }, { "writes", core_writes },
  { "log", core_log }, { "source", core_source }, { "add", core_add }, { "request_field", core_request_field },
  { "request_pairs", core_request_pairs }, { "header_set", core_header_set }, { "header_get", core_header_get },
  { "write", core_write }, { "respond", core_respond }, { "json_parse", core_json_parse },
  { "prepare", core_prepare }, { "command", core_command },
  { "call_elsewhere", core_call_elsewhere }, { "call_failed", core_call_failed },
  { "json_generate", core_json_generate }, { "respond_json", core_respond_json },
  { "run_file", core_run_file }, { "begin_transaction", core_begin_transaction }, { "commit", core_commit },
  { "roll_back", core_roll_back }, { "print", core_print }, { "regexp_compile", core_regexp_compile },
  { "regexp_search", core_regexp_search }, { "remember", core_remember },
  { "respond_bare", core_respond_bare }, { "document_root", core_document_root }, { "stat", core_stat },
  { "figures", core_figures }, { "compile", core_compile }, { "run_compiled", core_run_compiled },
  { "remove_global", core_remove_global },
};

#define COUNT(entries) (sizeof(entries) / sizeof((entries)[0]))

void
tokaido_define(mrb_state *mrb)
{
  tokaido_vm *vm = (tokaido_vm*)mrb->ud;
  struct RClass *tokaido = mrb_define_module(mrb, "Tokaido");
  struct RClass *core = mrb_define_module_under(mrb, tokaido, "Core");
  vm->core = mrb_obj_value(core);
  vm->error_class = mrb_define_class_under(mrb, tokaido, "Error", mrb->eStandardError_class);
  vm->database_class = mrb_define_class_under(mrb, tokaido, "Database", mrb->object_class);
  MRB_SET_INSTANCE_TT(vm->database_class, MRB_TT_CDATA);
  mrb_undef_class_method(mrb, vm->database_class, "new");
  mrb_undef_class_method(mrb, vm->database_class, "allocate");
  for (size_t i = 0; i < COUNT(database_methods); i++) {
    mrb_define_method(mrb, vm->database_class, database_methods[i].name, database_methods[i].function, MRB_ARGS_ANY());
  }
  for (size_t i = 0; i < COUNT(core_methods); i++) {
    mrb_define_class_method(mrb, core, core_methods[i].name, core_methods[i].function, MRB_ARGS_ANY());
  }
  tokaido_define_scripts(mrb, core);
}
