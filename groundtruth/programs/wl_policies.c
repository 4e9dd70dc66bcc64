/* wl_policies HOGS SLEEPERS MS: hogs, and processes that work and sleep in turn, of SCHED_OTHER,
 * SCHED_BATCH, SCHED_IDLE and SCHED_RR by turns (no hog of the last), for MS ms of wall time. */
#include "wlcommon.h"
int main(int c, char **v)
{
	if (c < 4) { fprintf(stderr, "usage: wl_policies HOGS SLEEPERS MS\n"); return 2; }
	static const int policies[] = { SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_RR };
	int hogs = atoi(v[1]), n = hogs + atoi(v[2]);
	uint64_t end = now_ns() + atoi(v[3]) * 1000000ull;
	name_me("pl-main%.0d", 0);
	for (int i = 0; i < n; i++)
		if (!fork()) {
			int policy = policies[i < hogs ? i % 3 : (i - hogs) % 4];
			struct sched_param p = { .sched_priority = policy == SCHED_RR ? 5 : 0 };
			name_me(i < hogs ? "pl-h%d" : "pl-s%d", i);
			if (sched_setscheduler(0, policy, &p)) die("sched_setscheduler");
			work_until(end, 20000, i < hogs ? 0 : 500);
			_exit(0);
		}
	while (wait(NULL) > 0) ;
	return 0;
}
