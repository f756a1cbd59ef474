/* Runs a match of a regular expression so that a signal handler can end it.
 *
 * PCRE2's machine code looks at no clock, and a short expression can keep it busy for hours. The handler of the
 * watchdog's signal (src/watchdog.rs) jumps out of it: that code holds no lock and no memory, and all that it writes
 * is the match data, which the next match begins anew. PCRE2's interpreter does take memory; so what comes here
 * has machine code, which src/openresty/regex.rs sees to. No frame of Rust lies between jump and target but the
 * handler's own, which has nothing to drop. This is in C because a function that returns twice cannot be written
 * in Rust.
 */

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/* The same layout as `Runnable` in src/openresty/regex.rs; `run` is pcre2_jit_match or pcre2_match. */
struct runnable {
	int (*run)(const void *code, const uint8_t *subject, size_t len, size_t start, uint32_t options,
	           void *data, void *context);
	const void *code;
	void *data;
	void *context;
	/* Where a match begins and where it ends, which `run` writes. */
	const size_t *offsets;
};

/* As PCRE2 numbers them. */
#define BAD_OFFSET (-33)
#define BAD_MATCH (-60)

/* No error of PCRE2 has this number. */
#define STOPPED (-1000)

static __thread sigjmp_buf target;
static __thread volatile sig_atomic_t is_running;

/* Matches; gives what PCRE2 gives, or STOPPED. By \K within what a lookaround calls, an expression can have a match
 * begin behind its end, or before the search did: that is none here, so that every match lies in the text, and behind
 * the one before.
 */
int32_t tokaido_regex_run(const struct runnable *regex, const uint8_t *subject, size_t len, size_t start)
{
	if (start > len) {
		return BAD_OFFSET;
	}
	/* The mask of signals is left alone: saving it would be a call of the system for each match. */
	if (sigsetjmp(target, 0) != 0) {
		return STOPPED;
	}
	is_running = 1;
	int found = regex->run(regex->code, subject, len, start, 0, regex->data, regex->context);
	is_running = 0;
	if (found > 0 && (regex->offsets[0] < start || regex->offsets[0] > regex->offsets[1])) {
		return BAD_MATCH;
	}
	return found;
}

/* For the handler of `signal_number` alone: ends the match that it has interrupted, if there is one. */
void tokaido_regex_stop(int signal_number)
{
	if (is_running) {
		sigset_t blocked;
		is_running = 0;
		/* It is blocked while its handler runs, which now never returns. */
		sigemptyset(&blocked);
		sigaddset(&blocked, signal_number);
		pthread_sigmask(SIG_UNBLOCK, &blocked, NULL);
		siglongjmp(target, 1);
	}
}
