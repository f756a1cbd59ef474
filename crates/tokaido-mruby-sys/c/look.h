#ifndef TOKAIDO_LOOK_H
#define TOKAIDO_LOOK_H

/* Raises if the call on this thread must stop, or the stack is about to overflow. */
void tokaido_look(void);

#endif
