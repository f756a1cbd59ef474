/* Opens, fills, calls and closes a VM. */
#include "tokaido.h"
#include <stdlib.h>
#include <string.h>
#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/compile.h>
#include <mruby/error.h>
#include <mruby/proc.h>
#include <mruby/string.h>
#include <mruby/variable.h>

static const char *const names[TOKAIDO_NAMES] = {
  "@procedures", "initialize", "$~", "@status", "@script", "compiled", "@code", "@body", "@fields", "@content_type",
  "@headers_out", "@err_headers_out", "@filter", "@answered", "@has_phases", "@has_globals",
};

/* Charges memory to the VM while it runs. */
static tokaido_vm*
enter(tokaido_vm *vm)
{
  tokaido_vm *outer = tokaido_current;
  tokaido_current = vm;
  return outer;
}

static mrb_value
define(mrb_state *mrb, void *data)
{
  tokaido_vm *vm = (tokaido_vm*)data;
  for (size_t i = 0; i < TOKAIDO_NAMES; i++) vm->names[i] = mrb_intern_cstr(mrb, names[i]);
  vm->visit = vm->transaction = mrb_nil_value();
  tokaido_define(mrb);
  vm->basic_class = mrb->object_class;
  mrb_method_search_vm(mrb, &vm->basic_class, vm->names[TOKAIDO_INITIALIZE]);
  /* A frozen exception gets no backtrace, so raising it takes no memory. */
  vm->stop = mrb_obj_ptr(mrb_exc_new_lit(mrb, vm->mrb->eException_class, "stopped"));
  mrb_gc_register(mrb, mrb_obj_value(vm->stop));
  mrb_obj_freeze(mrb, mrb_obj_value(vm->stop));
  return mrb_nil_value();
}

/* NULL if there is no memory. */
tokaido_vm*
tokaido_open(const tokaido_calls *calls, void *context, size_t limit)
{
  tokaido_vm *vm = (tokaido_vm*)calloc(1, sizeof(tokaido_vm));
  if (vm == NULL) return NULL;
  vm->calls = calls;
  vm->context = context;
  vm->limit = SIZE_MAX;
  tokaido_find_stack();
  tokaido_vm *outer = enter(vm);
  vm->mrb = mrb_open();
  mrb_bool failed = vm->mrb == NULL;
  if (!failed) {
    vm->mrb->ud = vm;
    mrb_protect_error(vm->mrb, define, vm, &failed);
    mrb_gc_arena_restore(vm->mrb, 0);
  }
  vm->limit = limit;
  tokaido_current = outer;
  if (!failed) return vm;
  tokaido_close(vm);
  return NULL;
}

void
tokaido_close(tokaido_vm *vm)
{
  tokaido_vm *outer = enter(vm);
  vm->limit = SIZE_MAX;
  if (vm->mrb != NULL) {
    tokaido_go_on(vm);
    if (vm->lines != NULL) mrb_ccontext_free(vm->mrb, vm->lines);
    mrb_close(vm->mrb);
  }
  tokaido_free_blocks(vm);
  tokaido_current = outer;
  free(vm);
}

/* Limits the VM's memory to `limit` bytes from here on. */
void
tokaido_set_limit(tokaido_vm *vm, size_t limit)
{
  vm->limit = limit;
}

/* Raises what the parser found wrong, as PATH:LINE: MESSAGE. */
static void
raise_syntax_error(mrb_state *mrb, struct mrb_parser_state *parser, const char *path)
{
  mrb_value message;
  if (parser == NULL || parser->nerr == 0 || parser->error_buffer[0].message == NULL) {
    message = mrb_format(mrb, "%s: cannot be compiled", path);
  }
  else {
    message = mrb_format(mrb, "%s:%d: %s", path, (int)parser->error_buffer[0].lineno, parser->error_buffer[0].message);
  }
  if (parser != NULL) mrb_parser_free(parser);
  mrb_exc_raise(mrb, mrb_exc_new_str(mrb, E_SYNTAX_ERROR, message));
}

/* Compiles a file; raises if it cannot be compiled. */
mrb_value
tokaido_compile(mrb_state *mrb, const char *text, size_t len, const char *path)
{
  tokaido_vm *vm = (tokaido_vm*)mrb->ud;
  vm->is_compiling = true;
  mrb_ccontext *options = mrb_ccontext_new(mrb);
  mrb_ccontext_filename(mrb, options, path);
  options->capture_errors = TRUE;
  struct mrb_parser_state *parser = mrb_parse_nstring(mrb, text, len, options);
  struct RProc *procedure = NULL;
  mrb_bool is_wrong = parser == NULL || parser->nerr > 0 || parser->tree == NULL;
  if (!is_wrong) procedure = mrb_generate_code(mrb, parser);
  mrb_ccontext_free(mrb, options);
  vm->is_compiling = false;
  if (procedure == NULL) {
    mrb->exc = NULL;
    raise_syntax_error(mrb, parser, path);
  }
  mrb_parser_free(parser);
  return mrb_obj_value(procedure);
}

/* Runs compiled code as the top level of a file. */
mrb_value
tokaido_run(mrb_state *mrb, mrb_value compiled)
{
  struct RProc *procedure = mrb_proc_ptr(compiled);
  MRB_PROC_SET_TARGET_CLASS(procedure, mrb->object_class);
  mrb_vm_ci_target_class_set(mrb->c->ci, mrb->object_class);
  mrb_value result = mrb_top_run(mrb, procedure, mrb_top_self(mrb), 0);
  if (mrb->exc) {
    mrb_value raised = mrb_obj_value(mrb->exc);
    mrb->exc = NULL;
    mrb_exc_raise(mrb, raised);
  }
  return result;
}

typedef struct {
  tokaido_vm *vm;
  const char *text, *path, *method;
  const tokaido_item *arguments;
  size_t len, count, place;
  bool is_handler;
  mrb_value raised;
  bool is_unfinished;
} task;

static mrb_value
load(mrb_state *mrb, void *data)
{
  task *task = data;
  return tokaido_run(mrb, tokaido_compile(mrb, task->text, task->len, task->path));
}

static mrb_value
call(mrb_state *mrb, void *data)
{
  task *task = data;
  const tokaido_item *items = task->arguments;
  mrb_value arguments = mrb_ary_new_capa(mrb, (mrb_int)task->count);
  for (size_t i = 0; i < task->count; i++) {
    mrb_ary_push(mrb, arguments, tokaido_build(mrb, &items));
  }
  tokaido_vm *vm = task->vm;
  /* Most calls are of one method, whose name has one address. */
  if (vm->method != task->method) {
    vm->method = task->method;
    vm->method_symbol = mrb_intern_cstr(mrb, task->method);
  }
  mrb_value result = mrb_funcall_argv(mrb, vm->core, vm->method_symbol, RARRAY_LEN(arguments), RARRAY_PTR(arguments));
  mrb_gc_protect(mrb, result);
  task->vm->calls->gather_begin(task->vm->context);
  tokaido_walk(mrb, result, 0);
  return mrb_nil_value();
}

/* Creates an object. If its class has no `initialize` of its own, it is not called. */
static mrb_value
make(mrb_state *mrb, struct RClass *class)
{
  const tokaido_vm *vm = (tokaido_vm*)mrb->ud;
  struct RClass *owner = class;
  mrb_method_search_vm(mrb, &owner, vm->names[TOKAIDO_INITIALIZE]);
  if (owner != vm->basic_class) return mrb_obj_new(mrb, class, 0, NULL);
  return mrb_obj_value(mrb_obj_alloc(mrb, MRB_TT_OBJECT, class));
}

/* The entry of `Tokaido::Core` for the called procedure. The matches of the previous call are forgotten. */
static mrb_value
begin(mrb_state *mrb, const task *task)
{
  const tokaido_vm *vm = task->vm;
  if (!mrb_nil_p(mrb_gv_get(mrb, vm->names[TOKAIDO_LAST_MATCH]))) {
    mrb_value nothing = mrb_nil_value();
    mrb_funcall_argv(mrb, mrb_obj_value(mrb_class_get(mrb, "Regexp")), mrb_intern_lit(mrb, "remember"), 1, &nothing);
  }
  mrb_value procedures = mrb_iv_get(mrb, vm->core, vm->names[TOKAIDO_PROCEDURES]);
  /* A procedure may have replaced it by anything. */
  return mrb_array_p(procedures) ? mrb_ary_ref(mrb, procedures, (mrb_int)task->place) : mrb_nil_value();
}

static mrb_value
answer(mrb_state *mrb, void *data)
{
  return tokaido_answer_with(mrb, begin(mrb, data));
}

/* Calls a method on a new object. */
static mrb_value
run_procedure(mrb_state *mrb, void *data)
{
  task *task = data;
  tokaido_vm *vm = task->vm;
  mrb_value procedure = begin(mrb, task);
  bool is_procedure = mrb_array_p(procedure) && RARRAY_LEN(procedure) == 2 && mrb_class_p(RARRAY_PTR(procedure)[0]) &&
                      mrb_symbol_p(RARRAY_PTR(procedure)[1]);
  if (!is_procedure) mrb_raise(mrb, vm->error_class, "the list of procedures was overwritten");
  mrb_value this = make(mrb, mrb_class_ptr(RARRAY_PTR(procedure)[0]));
  mrb_sym method = mrb_symbol(RARRAY_PTR(procedure)[1]);
  if (task->is_handler) {
    mrb_value response = mrb_obj_value(mrb_obj_alloc(mrb, MRB_TT_OBJECT, vm->response_class));
    mrb_value request = mrb_obj_value(mrb_obj_alloc(mrb, MRB_TT_OBJECT, vm->request_class));
    mrb_value arguments[] = { vm->transaction, request, response };
    mrb_value body = mrb_funcall_argv(mrb, this, method, 3, arguments);
    mrb_gc_protect(mrb, body);
    tokaido_respond(mrb, response, body);
    return mrb_nil_value();
  }
  const tokaido_item *items = task->arguments;
  mrb_value arguments = mrb_ary_new_capa(mrb, (mrb_int)task->count + 1);
  mrb_ary_push(mrb, arguments, vm->transaction);
  for (size_t i = 0; i < task->count; i++) {
    mrb_ary_push(mrb, arguments, tokaido_build(mrb, &items));
  }
  mrb_value result = mrb_funcall_argv(mrb, this, method, RARRAY_LEN(arguments), RARRAY_PTR(arguments));
  mrb_gc_protect(mrb, result);
  vm->calls->gather_begin(vm->context);
  tokaido_walk(mrb, result, 0);
  return mrb_nil_value();
}

/* Whether the parsed text is incomplete: it ends within a literal, or where something must follow. */
static bool
is_unfinished(const struct mrb_parser_state *parser)
{
  static const char unexpected_end[] = "syntax error, unexpected end of file";
  if (parser->parsing_heredoc != NULL || parser->lex_strterm != NULL) return true;
  const char *message = parser->nerr > 0 ? parser->error_buffer[0].message : NULL;
  return message != NULL && strncmp(message, unexpected_end, sizeof(unexpected_end) - 1) == 0;
}

/* Compiles a line that sees its own local variables and those of earlier lines; nil if it is incomplete. */
static mrb_value
compile_line(mrb_state *mrb, task *task)
{
  tokaido_vm *vm = task->vm;
  if (vm->lines == NULL) {
    vm->lines = mrb_ccontext_new(mrb);
    vm->lines->capture_errors = TRUE;
    mrb_ccontext_filename(mrb, vm->lines, task->path);
  }
  vm->is_compiling = true;
  struct mrb_parser_state *parser = mrb_parse_nstring(mrb, task->text, task->len, vm->lines);
  struct RProc *procedure = NULL;
  task->is_unfinished = parser != NULL && is_unfinished(parser);
  bool is_wrong = task->is_unfinished || parser == NULL || parser->nerr > 0 || parser->tree == NULL;
  if (!is_wrong) procedure = mrb_generate_code(mrb, parser);
  vm->is_compiling = false;
  if (procedure == NULL) mrb->exc = NULL;
  if (procedure == NULL && !task->is_unfinished) raise_syntax_error(mrb, parser, task->path);
  mrb_parser_free(parser);
  return procedure == NULL ? mrb_nil_value() : mrb_obj_value(procedure);
}

/* Runs a line while no method runs, so that its local variables stay at the bottom of the stack. */
static mrb_value
type(mrb_state *mrb, void *data)
{
  task *task = data;
  tokaido_vm *vm = task->vm;
  mrb_value line = compile_line(mrb, task);
  if (mrb_nil_p(line)) return line;
  struct RProc *procedure = mrb_proc_ptr(line);
  MRB_PROC_SET_TARGET_CLASS(procedure, mrb->object_class);
  mrb_vm_ci_target_class_set(mrb->c->ci, mrb->object_class);
  mrb_int locals = procedure->body.irep->nlocals;
  /* Blocks of previous lines share these variables with it. */
  struct REnv *shared = mrb_vm_ci_env(mrb->c->cibase);
  if (shared != NULL && MRB_ENV_LEN(shared) < locals) MRB_ENV_SET_LEN(shared, locals);
  mrb_value result = mrb_vm_run(mrb, procedure, mrb_top_self(mrb), vm->kept);
  vm->kept = locals;
  if (mrb->exc) {
    mrb_value raised = mrb_obj_value(mrb->exc);
    mrb->exc = NULL;
    mrb_exc_raise(mrb, raised);
  }
  mrb_gc_protect(mrb, result);
  result = mrb_funcall_argv(mrb, vm->core, mrb_intern_lit(mrb, "shown"), 1, &result);
  vm->calls->gather_begin(vm->context);
  tokaido_walk(mrb, result, 0);
  return mrb_nil_value();
}

static mrb_value
report(mrb_state *mrb, void *data)
{
  task *task = data;
  mrb_value result = mrb_funcall_argv(mrb, task->vm->core, mrb_intern_lit(mrb, "report"), 1, &task->raised);
  task->vm->calls->gather_begin(task->vm->context);
  tokaido_walk(mrb, result, 0);
  return mrb_nil_value();
}

/* Runs one part of a task; what it created is garbage afterwards. */
static int
run(tokaido_vm *vm, mrb_protect_error_func *body, task *task)
{
  mrb_bool failed = FALSE;
  mrb_state *mrb = vm->mrb;
  tokaido_vm *outer = enter(vm);
  int ai = mrb_gc_arena_save(mrb);
  int outcome = TOKAIDO_DONE;
  vm->is_refused = vm->is_collecting = vm->is_compiling = false;
  task->raised = mrb_protect_error(mrb, body, task, &failed);
  if (failed) {
    outcome = TOKAIDO_UNREPORTED;
    /* A VM that must stop would only raise again. */
    if (mrb->code_fetch_hook == NULL && mrb->c == mrb->root_c) {
      mrb_protect_error(mrb, report, task, &failed);
      if (!failed) outcome = TOKAIDO_RAISED;
    }
  }
  mrb->exc = NULL;
  mrb_gc_arena_restore(mrb, ai);
  tokaido_current = outer;
  return outcome;
}

/* Runs a file. */
int
tokaido_load(tokaido_vm *vm, const char *text, size_t len, const char *path)
{
  task task = { .vm = vm, .text = text, .len = len, .path = path };
  return run(vm, load, &task);
}

/* Calls a method of `Tokaido::Core`. */
int
tokaido_call(tokaido_vm *vm, const char *method, const tokaido_item *arguments, size_t count)
{
  task task = { .vm = vm, .method = method, .arguments = arguments, .count = count };
  return run(vm, call, &task);
}

/* Calls a procedure. */
int
tokaido_run_procedure(tokaido_vm *vm, size_t place, bool is_handler, const tokaido_item *arguments, size_t count)
{
  task task = { .vm = vm, .place = place, .is_handler = is_handler, .arguments = arguments, .count = count };
  return run(vm, run_procedure, &task);
}

/* Answers with a mod_mruby script. */
int
tokaido_answer(tokaido_vm *vm, size_t place)
{
  task task = { .vm = vm, .place = place };
  int outcome = run(vm, answer, &task);
  vm->visit = mrb_nil_value();
  return outcome;
}

/* Runs a typed line. */
int
tokaido_type(tokaido_vm *vm, const char *text, size_t len, const char *path)
{
  task task = { .vm = vm, .text = text, .len = len, .path = path };
  int outcome = run(vm, type, &task);
  return outcome == TOKAIDO_DONE && task.is_unfinished ? TOKAIDO_UNFINISHED : outcome;
}

bool
tokaido_has_local(tokaido_vm *vm, const char *name)
{
  const struct mrb_ccontext *lines = vm->lines;
  mrb_sym symbol = mrb_intern_check_cstr(vm->mrb, name);
  for (int i = 0; symbol != 0 && lines != NULL && i < lines->slen; i++) {
    if (lines->syms[i] == symbol) return true;
  }
  return false;
}

bool
tokaido_is_refused(const tokaido_vm *vm)
{
  return vm->is_refused;
}

/* Whether the last call left the VM as it was: not in the middle of a fiber. */
bool
tokaido_is_sound(const tokaido_vm *vm)
{
  return vm->mrb->c == vm->mrb->root_c && vm->mrb->c->ci == vm->mrb->c->cibase;
}

size_t
tokaido_used(const tokaido_vm *vm)
{
  return vm->used;
}

/* The number of symbols, which are never freed. */
size_t
tokaido_symbols(const tokaido_vm *vm)
{
  return vm->mrb->symidx;
}

int
tokaido_arena(const tokaido_vm *vm)
{
  return vm->mrb->gc.arena_idx;
}

/* The number of objects that remain after a full collection. */
size_t
tokaido_live(tokaido_vm *vm)
{
  tokaido_vm *outer = enter(vm);
  mrb_full_gc(vm->mrb);
  tokaido_current = outer;
  return vm->mrb->gc.live;
}
