/* Converts values between mruby and Rust, as sequences of items. */
#include "tokaido.h"
#include <mruby/array.h>
#include <mruby/data.h>
#include <mruby/error.h>
#include <mruby/hash.h>
#include <mruby/string.h>
#include "database.h"

/* Maximum nesting depth. */
#define DEPTH_MAX 100

/* Converts a value without parts; returns false if it has parts. */
bool
tokaido_item_of(mrb_state *mrb, mrb_value value, tokaido_item *item)
{
  *item = (tokaido_item){ .kind = TOKAIDO_NIL };
  switch (mrb_type(value)) {
  case MRB_TT_FALSE:
    item->kind = mrb_nil_p(value) ? TOKAIDO_NIL : TOKAIDO_FALSE;
    return true;
  case MRB_TT_TRUE:
    item->kind = TOKAIDO_TRUE;
    return true;
  case MRB_TT_INTEGER:
    item->kind = TOKAIDO_INTEGER;
    item->integer = mrb_integer(value);
    return true;
  case MRB_TT_FLOAT:
    item->kind = TOKAIDO_NUMBER;
    item->number = mrb_float(value);
    return true;
  case MRB_TT_STRING:
    item->kind = TOKAIDO_BYTES;
    item->bytes = RSTRING_PTR(value);
    item->len = (size_t)RSTRING_LEN(value);
    return true;
  case MRB_TT_SYMBOL:
    item->kind = TOKAIDO_BYTES;
    /* Short names are in a buffer of the VM that the next one overwrites, so the bytes come from a string. */
    value = mrb_sym_str(mrb, mrb_symbol(value));
    item->bytes = RSTRING_PTR(value);
    item->len = (size_t)RSTRING_LEN(value);
    return true;
  default:
    return false;
  }
}

static void
give(mrb_state *mrb, const tokaido_item *item)
{
  tokaido_vm *vm = (tokaido_vm*)mrb->ud;
  if (vm->calls->gather(vm->context, item) != 0) {
    mrb_raise(mrb, E_ARGUMENT_ERROR, "more values or bytes than are passed on at once");
  }
}

static void
walk_array(mrb_state *mrb, mrb_value array, int depth)
{
  mrb_int len = RARRAY_LEN(array);
  tokaido_item item = { .kind = TOKAIDO_ARRAY, .integer = len };
  give(mrb, &item);
  for (mrb_int i = 0; i < len; i++) {
    int ai = mrb_gc_arena_save(mrb);
    /* Code that ran meanwhile may have shortened it. */
    tokaido_walk(mrb, mrb_ary_ref(mrb, array, i), depth + 1);
    mrb_gc_arena_restore(mrb, ai);
  }
}

static void
walk_hash(mrb_state *mrb, mrb_value hash, int depth)
{
  mrb_value keys = mrb_hash_keys(mrb, hash);
  mrb_int len = RARRAY_LEN(keys);
  tokaido_item item = { .kind = TOKAIDO_MAP, .integer = len };
  give(mrb, &item);
  for (mrb_int i = 0; i < len; i++) {
    int ai = mrb_gc_arena_save(mrb);
    mrb_value key = mrb_ary_ref(mrb, keys, i);
    tokaido_item name;
    if (!tokaido_item_of(mrb, key, &name) || name.kind == TOKAIDO_NIL) {
      mrb_raisef(mrb, E_TYPE_ERROR, "a hash that is passed on has strings, symbols, numbers and booleans as keys, not %T", key);
    }
    give(mrb, &name);
    tokaido_walk(mrb, mrb_hash_fetch(mrb, hash, key, mrb_nil_value()), depth + 1);
    mrb_gc_arena_restore(mrb, ai);
  }
}

/* Passes a value to Rust. */
void
tokaido_walk(mrb_state *mrb, mrb_value value, int depth)
{
  tokaido_vm *vm = (tokaido_vm*)mrb->ud;
  tokaido_item item;
  tokaido_look();
  if (depth > DEPTH_MAX) {
    mrb_raise(mrb, E_ARGUMENT_ERROR, "values nested too deeply, or in a circle, cannot be passed on");
  }
  if (tokaido_item_of(mrb, value, &item)) {
    give(mrb, &item);
  }
  else if (mrb_array_p(value)) {
    walk_array(mrb, value, depth);
  }
  else if (mrb_hash_p(value)) {
    walk_hash(mrb, value, depth);
  }
  else {
    /* Converts other objects, such as a Struct, or raises. */
    mrb_value plain = mrb_funcall_argv(mrb, vm->core, mrb_intern_lit(mrb, "plain"), 1, &value);
    tokaido_walk(mrb, plain, depth + 1);
  }
}

/* Builds the value whose items start at `*items`, and advances past them. */
mrb_value
tokaido_build(mrb_state *mrb, const tokaido_item **items)
{
  const tokaido_item *item = (*items)++;
  mrb_value made, key, value;
  int ai;
  switch (item->kind) {
  case TOKAIDO_FALSE:
    return mrb_false_value();
  case TOKAIDO_TRUE:
    return mrb_true_value();
  case TOKAIDO_INTEGER:
    return mrb_int_value(mrb, item->integer);
  case TOKAIDO_NUMBER:
    return mrb_float_value(mrb, item->number);
  case TOKAIDO_BYTES:
    return mrb_str_new(mrb, item->bytes, (mrb_int)item->len);
  case TOKAIDO_DATABASE:
    return tokaido_database(mrb, item->integer);
  case TOKAIDO_ARRAY:
    tokaido_look();
    made = mrb_ary_new_capa(mrb, item->integer);
    ai = mrb_gc_arena_save(mrb);
    for (int64_t i = 0; i < item->integer; i++) {
      mrb_ary_push(mrb, made, tokaido_build(mrb, items));
      mrb_gc_arena_restore(mrb, ai);
    }
    return made;
  case TOKAIDO_MAP:
    tokaido_look();
    made = mrb_hash_new_capa(mrb, item->integer);
    ai = mrb_gc_arena_save(mrb);
    for (int64_t i = 0; i < item->integer; i++) {
      key = tokaido_build(mrb, items);
      value = tokaido_build(mrb, items);
      mrb_hash_set(mrb, made, key, value);
      mrb_gc_arena_restore(mrb, ai);
    }
    return made;
  default:
    return mrb_nil_value();
  }
}
