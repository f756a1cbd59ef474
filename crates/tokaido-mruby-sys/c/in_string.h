/* Included before mruby's string.c: between two comparisons, searches check whether to stop the call, as the
 * interpreter does between two instructions. */
#include <string.h>
#include "look.h"

static inline int
tokaido_memcmp(const void *a, const void *b, size_t len)
{
  tokaido_look();
  return memcmp(a, b, len);
}
#define memcmp(a, b, len) tokaido_memcmp((a), (b), (len))
