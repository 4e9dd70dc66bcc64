/* wl_rt TASKS HOGS MS PERIODUS WORK: periodic real-time tasks, SCHED_FIFO and SCHED_RR in turn with
 * priorities from 10 on, each of WORK loop turns in a period, beside hogs of the fair class, for MS ms of wall time. */
#include "wlcommon.h"
int main(int c, char **v)
{
	if (c < 6) { fprintf(stderr, "usage: wl_rt TASKS HOGS MS PERIODUS WORK\n"); return 2; }
	int tasks = atoi(v[1]), hogs = atoi(v[2]);
	uint64_t end = now_ns() + atoi(v[3]) * 1000000ull, period = atoi(v[4]) * 1000ull, wk = strtoull(v[5], 0, 0);
	name_me("rt-main%.0d", 0);
	for (int i = 0; i < tasks + hogs; i++)
		if (!fork()) {
			name_me(i < tasks ? "rt-%d" : "rt-h%d", i);
			if (i >= tasks) {
				work_until(end, 2000, 0);
				_exit(0);
			}
			struct sched_param p = { .sched_priority = 10 + i };
			if (sched_setscheduler(0, i % 2 ? SCHED_RR : SCHED_FIFO, &p)) die("sched_setscheduler");
			/* Periods of their own, so that they meet in every order. */
			for (uint64_t at = now_ns(); at < end;) {
				work(wk);
				at += period + period / 8 * i;
				struct timespec t = { at / 1000000000, at % 1000000000 };
				clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
			}
			_exit(0);
		}
	while (wait(NULL) > 0) ;
	return 0;
}
