/* `Tokaido::Database`: an object that holds the number of a database and nothing else. */
#ifndef TOKAIDO_DATABASE_H
#define TOKAIDO_DATABASE_H

#include <mruby.h>

mrb_value tokaido_database(mrb_state *mrb, int64_t number);

#endif
