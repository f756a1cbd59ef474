#ifndef TOKAIDO_LOOK_H
#define TOKAIDO_LOOK_H

/* Raises if the call that runs on this thread is to be stopped, or the stack is about to end. */
void tokaido_look(void);

#endif
