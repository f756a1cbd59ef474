/* Memory and stopping. mruby takes all of its memory here, of the account of the VM that runs on this thread. */
#include "tokaido.h"
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <mruby/error.h>

/* Bytes of a thread's stack that C code of mruby leaves alone. */
#define STACK_LEFT (256 << 10)

_Thread_local tokaido_vm *tokaido_current;

/* Where mruby's part of this thread's stack ends. */
static _Thread_local const char *stack_end;

void
tokaido_find_stack(void)
{
  pthread_attr_t attributes;
  void *lowest;
  size_t size;
  if (stack_end != NULL || pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  if (pthread_attr_getstack(&attributes, &lowest, &size) == 0 && size > 2 * STACK_LEFT) {
    stack_end = (const char*)lowest + STACK_LEFT;
  }
  pthread_attr_destroy(&attributes);
}

/* Whether C functions call each other so deeply that the stack is about to end: mruby counts its own calls alone. */
static bool
is_deep(void)
{
  const char here = 0;
  return &here < stack_end;
}

/* Raises before the next instruction, and before each one after it, so that no rescue, ensure or retry goes on. */
static void
on_fetch(mrb_state *mrb, const struct mrb_irep *irep, const mrb_code *pc, mrb_value *regs)
{
  tokaido_vm *vm = (tokaido_vm*)mrb->ud;
  (void)irep;
  (void)regs;
  if (vm->stop == NULL || vm->is_compiling) return;
  /* Else the first instruction of a rescue would be within the range that it rescues, and found again for ever. */
  mrb->c->ci->pc = pc + 1;
  mrb_exc_raise(mrb, mrb_obj_value(vm->stop));
}

/* To be called from a signal handler of the VM's own thread, too. */
void
tokaido_stop(tokaido_vm *vm)
{
  vm->mrb->code_fetch_hook = on_fetch;
}

void
tokaido_go_on(tokaido_vm *vm)
{
  vm->mrb->code_fetch_hook = NULL;
}

void
tokaido_look(void)
{
  tokaido_vm *vm = tokaido_current;
  if (vm == NULL || vm->stop == NULL || vm->is_compiling || vm->mrb->jmp == NULL) return;
  if (vm->mrb->code_fetch_hook != NULL) mrb_exc_raise(vm->mrb, mrb_obj_value(vm->stop));
  if (is_deep()) mrb_exc_raise(vm->mrb, mrb_obj_value(vm->mrb->stack_err));
}

/* mruby collects its garbage and asks again, unless it is collecting already: what is refused then, it will not have. */
static void*
refuse(tokaido_vm *vm)
{
  if (!vm->is_collecting && !is_deep() && vm->mrb->gc.state != MRB_GC_STATE_SWEEP) {
    vm->is_collecting = true;
    return NULL;
  }
  vm->is_collecting = false;
  vm->is_refused = true;
  tokaido_stop(vm);
  return NULL;
}

void*
mrb_basic_alloc_func(void *old, size_t size)
{
  tokaido_vm *vm = tokaido_current;
  size_t had = old == NULL ? 0 : malloc_usable_size(old);
  if (size == 0) {
    free(old);
    if (vm != NULL) vm->used -= had;
    return NULL;
  }
  if (vm != NULL && !vm->is_compiling && size > had && (vm->used - had + size > vm->limit || is_deep())) {
    return refuse(vm);
  }
  void *made = realloc(old, size);
  if (made == NULL) return NULL;
  if (vm != NULL) {
    vm->used = vm->used - had + malloc_usable_size(made);
    vm->is_collecting = false;
  }
  return made;
}
