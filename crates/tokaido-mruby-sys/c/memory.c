/* Memory and stopping. mruby allocates all its memory here, on the account of the VM that runs on this thread. */
#include "tokaido.h"
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <mruby/error.h>

/* Bytes of a thread's stack that mruby's C code must leave free. */
#define STACK_LEFT (256 << 10)

_Thread_local tokaido_vm *tokaido_current;

/* The end of mruby's part of this thread's stack. */
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

/* Whether C functions are nested so deeply that the stack is about to overflow: mruby counts only its own calls. */
static bool
is_deep(void)
{
  const char here = 0;
  return &here < stack_end;
}

/* Raises before the next instruction, and before each one after it, so that no rescue, ensure or retry continues. */
static void
on_fetch(mrb_state *mrb, const struct mrb_irep *irep, const mrb_code *pc, mrb_value *regs)
{
  tokaido_vm *vm = (tokaido_vm*)mrb->ud;
  (void)irep;
  (void)regs;
  if (vm->stop == NULL || vm->is_compiling) return;
  /* Else the first instruction of a rescue would be within the range that it rescues, and be found again for ever. */
  mrb->c->ci->pc = pc + 1;
  mrb_exc_raise(mrb, mrb_obj_value(vm->stop));
}

/* May be called from a signal handler of the VM's own thread, too. */
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

/* mruby collects garbage and retries, unless it is collecting already: then the refusal is final. */
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

/* Small blocks that the VM has freed are kept for its next allocations: a sweep frees more at a time than malloc keeps
 * at hand. Class n has blocks of at least SMALLEST + n * STEP bytes. */
#define SMALLEST 24
#define STEP 16
#define KEPT_BYTES_MAX (128 << 10)

struct tokaido_block {
  struct tokaido_block *next;
};

/* Keeps a block; returns whether it was kept. */
static bool
keep_block(tokaido_vm *vm, void *block, size_t len)
{
  size_t class = len < SMALLEST ? TOKAIDO_BLOCK_CLASSES : (len - SMALLEST) / STEP;
  if (class >= TOKAIDO_BLOCK_CLASSES || vm->kept_bytes + len > KEPT_BYTES_MAX) return false;
  struct tokaido_block *kept = block;
  kept->next = vm->blocks[class];
  vm->blocks[class] = kept;
  vm->kept_bytes += len;
  return true;
}

/* Takes a kept block of at least `size` bytes; NULL if there is none. */
static void*
take_block(tokaido_vm *vm, size_t size)
{
  size_t class = size <= SMALLEST ? 0 : (size - SMALLEST + STEP - 1) / STEP;
  if (class >= TOKAIDO_BLOCK_CLASSES || vm->blocks[class] == NULL) return NULL;
  struct tokaido_block *taken = vm->blocks[class];
  vm->blocks[class] = taken->next;
  vm->kept_bytes -= malloc_usable_size(taken);
  return taken;
}

void
tokaido_free_blocks(tokaido_vm *vm)
{
  for (size_t class = 0; class < TOKAIDO_BLOCK_CLASSES; class++) {
    while (vm->blocks[class] != NULL) {
      struct tokaido_block *next = vm->blocks[class]->next;
      free(vm->blocks[class]);
      vm->blocks[class] = next;
    }
  }
  vm->kept_bytes = 0;
}

void*
mrb_basic_alloc_func(void *old, size_t size)
{
  tokaido_vm *vm = tokaido_current;
  size_t had = old == NULL ? 0 : malloc_usable_size(old);
  if (size == 0) {
    if (vm == NULL || old == NULL || !keep_block(vm, old, had)) free(old);
    if (vm != NULL) vm->used -= had;
    return NULL;
  }
  if (vm != NULL && !vm->is_compiling && size > had && (vm->used - had + size > vm->limit || is_deep())) {
    return refuse(vm);
  }
  void *made = vm != NULL && old == NULL ? take_block(vm, size) : NULL;
  if (made == NULL) made = realloc(old, size);
  if (made == NULL) return NULL;
  if (vm != NULL) {
    vm->used = vm->used - had + malloc_usable_size(made);
    vm->is_collecting = false;
  }
  return made;
}
