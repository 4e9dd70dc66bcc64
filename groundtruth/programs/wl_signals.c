/* wl_signals PAIRS ROUNDS WORK: pairs of processes that wake each other by signals:
 * each waits for one, does WORK loop turns and sends one back. */
#include "wlcommon.h"
#include <signal.h>
static void play(sigset_t *set, pid_t other, int rounds, uint64_t wk)
{
	siginfo_t from;
	for (int r = 0; r < rounds; r++) {
		if (sigwaitinfo(set, &from) < 0) die("sigwaitinfo");
		work(wk);
		kill(other ? other : from.si_pid, SIGUSR1);
	}
}
int main(int c, char **v)
{
	if (c < 4) { fprintf(stderr, "usage: wl_signals PAIRS ROUNDS WORK\n"); return 2; }
	int pairs = atoi(v[1]), rounds = atoi(v[2]);
	uint64_t wk = strtoull(v[3], 0, 0), t0 = now_ns();
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	name_me("sg-main%.0d", 0);
	for (int i = 0; i < pairs; i++)
		if (!fork()) {
			pid_t other = fork();
			name_me(other ? "sg-a%d" : "sg-b%d", i);
			if (other) kill(getpid(), SIGUSR1);
			play(&set, other, rounds, wk);
			if (other) wait(NULL);
			_exit(0);
		}
	while (wait(NULL) > 0) ;
	printf("signals pairs %d rounds %d ns %llu\n", pairs, rounds, (unsigned long long)(now_ns() - t0));
	return 0;
}
