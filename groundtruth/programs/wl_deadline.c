/* wl_deadline TASKS HOGS MS RUNTIMEUS PERIODUS: SCHED_DEADLINE tasks beside hogs, for MS ms of wall time.
 * A task wants half of its budget in one period and more than all of it in the next, so it is throttled in every other. */
#include "wlcommon.h"
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};
static void spin(uint64_t ns)
{
	struct timespec t;
	uint64_t used, until = 0;
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
		used = (uint64_t)t.tv_sec * 1000000000ull + t.tv_nsec;
		if (!until) until = used + ns;
		work(500);
	} while (used < until);
}
int main(int c, char **v)
{
	if (c < 6) { fprintf(stderr, "usage: wl_deadline TASKS HOGS MS RUNTIMEUS PERIODUS\n"); return 2; }
	int tasks = atoi(v[1]), hogs = atoi(v[2]);
	uint64_t end = now_ns() + atoi(v[3]) * 1000000ull, runtime = atoi(v[4]) * 1000ull, period = atoi(v[5]) * 1000ull;
	name_me("dl-main%.0d", 0);
	for (int i = 0; i < tasks + hogs; i++)
		if (!fork()) {
			name_me(i < tasks ? "dl-%d" : "dl-h%d", i);
			if (i >= tasks) {
				work_until(end, 2000, 0);
				_exit(0);
			}
			struct attr a = { .size = sizeof a, .policy = 6, .runtime = runtime, .deadline = period, .period = period };
			if (syscall(SYS_sched_setattr, 0, &a, 0)) die("sched_setattr");
			for (int k = 0; now_ns() < end; k++) {
				spin(k % 2 ? runtime * 3 / 2 : runtime / 2);
				usleep(period / 2000);
			}
			_exit(0);
		}
	while (wait(NULL) > 0) ;
	return 0;
}
