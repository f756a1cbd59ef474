/* Included before mruby's array.c: between two steps, sorting and joining check whether to stop the call, as the
 * interpreter does between two instructions. */
#include <mruby.h>
#include <mruby/string.h>
#include "look.h"

static inline mrb_int
tokaido_cmp(mrb_state *mrb, mrb_value a, mrb_value b)
{
  tokaido_look();
  return mrb_cmp(mrb, a, b);
}
#define mrb_cmp(mrb, a, b) tokaido_cmp((mrb), (a), (b))

/* A join starts with this call, and recurses into nested arrays. */
static inline mrb_value
tokaido_str_new_capa(mrb_state *mrb, mrb_int capa)
{
  tokaido_look();
  return mrb_str_new_capa(mrb, capa);
}
#define mrb_str_new_capa(mrb, capa) tokaido_str_new_capa((mrb), (capa))
