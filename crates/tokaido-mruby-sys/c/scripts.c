/* mod_mruby scripts: the request that a script answers, its output, and the fast path of answers that have only a
 * body. The rest is in ruby/apache/ of tokaido-ruby. */
#include "tokaido.h"
#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/string.h>
#include <mruby/variable.h>

static tokaido_vm*
vm_of(mrb_state *mrb)
{
  return (tokaido_vm*)mrb->ud;
}

static mrb_value
field(mrb_state *mrb, mrb_value visit, enum tokaido_name name)
{
  return mrb_iv_get(mrb, visit, vm_of(mrb)->names[name]);
}

/* `visit`: the request that is being answered, or nil. */
static mrb_value
core_visit(mrb_state *mrb, mrb_value self)
{
  (void)self;
  return vm_of(mrb)->visit;
}

/* `visit = visit`. A variable that Ruby methods cannot find keeps it from being collected. */
static mrb_value
core_set_visit(mrb_state *mrb, mrb_value self)
{
  mrb_value visit;
  mrb_get_args(mrb, "o", &visit);
  mrb_iv_set(mrb, self, mrb_intern_lit(mrb, "visit"), visit);
  vm_of(mrb)->visit = visit;
  return visit;
}

/* `Apache.rputs(text)`: appends to the body of the answer. */
static mrb_value
apache_rputs(mrb_state *mrb, mrb_value self)
{
  mrb_value text, visit = vm_of(mrb)->visit;
  mrb_get_args(mrb, "o", &text);
  text = mrb_obj_as_string(mrb, text);
  bool is_open = !mrb_nil_p(visit) && mrb_nil_p(field(mrb, visit, TOKAIDO_FILTER)) &&
                 mrb_nil_p(field(mrb, visit, TOKAIDO_ANSWERED));
  if (!is_open) {
    /* It says why this is impossible. */
    mrb_funcall_argv(mrb, mrb_obj_value(vm_of(mrb)->visit_class), mrb_intern_lit(mrb, "refuse_output"), 0, NULL);
    mrb_raise(mrb, vm_of(mrb)->error_class, "there is no output now");
  }
  mrb_value body = field(mrb, visit, TOKAIDO_BODY);
  if (!mrb_string_p(body)) mrb_iv_set(mrb, visit, vm_of(mrb)->names[TOKAIDO_BODY], mrb_str_dup(mrb, text));
  else mrb_str_cat_str(mrb, body, text);
  return self;
}

/* Whether a script has set nothing of the answer except, perhaps, its body. */
static bool
is_plain(mrb_state *mrb, mrb_value visit)
{
  static const enum tokaido_name names[] = {
    TOKAIDO_CODE, TOKAIDO_STATUS, TOKAIDO_CONTENT_TYPE, TOKAIDO_FIELDS, TOKAIDO_HEADERS_OUT, TOKAIDO_ERR_HEADERS_OUT,
  };
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    if (!mrb_nil_p(field(mrb, visit, names[i]))) return false;
  }
  mrb_value body = field(mrb, visit, TOKAIDO_BODY);
  return mrb_nil_p(body) || mrb_string_p(body);
}

/* Answers with a script that is not surrounded by phases: `ModMruby::Visit.answer` does the same for all others. */
mrb_value
tokaido_answer_with(mrb_state *mrb, mrb_value script)
{
  tokaido_vm *vm = vm_of(mrb);
  mrb_value visits = mrb_obj_value(vm->visit_class);
  if (mrb_test(field(mrb, visits, TOKAIDO_HAS_PHASES)) || mrb_test(field(mrb, visits, TOKAIDO_HAS_GLOBALS))) {
    return mrb_funcall_argv(mrb, visits, mrb_intern_lit(mrb, "answer"), 1, &script);
  }
  /* The arena holds it until the request is answered. */
  mrb_value visit = mrb_obj_value(mrb_obj_alloc(mrb, MRB_TT_OBJECT, vm->visit_class));
  mrb_iv_set(mrb, visit, vm->names[TOKAIDO_SCRIPT], script);
  vm->visit = visit;
  tokaido_run_compiled(mrb, field(mrb, script, TOKAIDO_CODE));
  if (is_plain(mrb, visit)) {
    tokaido_respond_bare(mrb, field(mrb, visit, TOKAIDO_BODY));
    return mrb_nil_value();
  }
  return mrb_funcall_argv(mrb, visit, mrb_intern_lit(mrb, "respond"), 0, NULL);
}

/* `prepare_scripts(visits, apache)`: the two classes. */
static mrb_value
core_prepare_scripts(mrb_state *mrb, mrb_value self)
{
  tokaido_vm *vm = vm_of(mrb);
  struct RClass *apache;
  (void)self;
  if (vm->visit_class != NULL) mrb_raise(mrb, vm->error_class, "scripts are prepared once");
  mrb_get_args(mrb, "cc", &vm->visit_class, &apache);
  mrb_gc_register(mrb, mrb_obj_value(vm->visit_class));
  mrb_define_class_method(mrb, apache, "rputs", apache_rputs, MRB_ARGS_REQ(1));
  return mrb_nil_value();
}

void
tokaido_define_scripts(mrb_state *mrb, struct RClass *core)
{
  mrb_define_class_method(mrb, core, "visit", core_visit, MRB_ARGS_NONE());
  mrb_define_class_method(mrb, core, "visit=", core_set_visit, MRB_ARGS_REQ(1));
  mrb_define_class_method(mrb, core, "prepare_scripts", core_prepare_scripts, MRB_ARGS_REQ(2));
}
