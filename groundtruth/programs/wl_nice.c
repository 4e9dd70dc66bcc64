/* wl_nice HOGS SLEEPERS MS STEPUS: hogs, and processes that work and sleep in turn, for MS ms of
 * wall time; every STEPUS us the main process gives the next of them another nice value. */
#include "wlcommon.h"
#include <sys/resource.h>
int main(int c, char **v)
{
	if (c < 5) { fprintf(stderr, "usage: wl_nice HOGS SLEEPERS MS STEPUS\n"); return 2; }
	static const int values[] = { 5, 0, -5, 10, 0, 3, -10 };
	int hogs = atoi(v[1]), n = hogs + atoi(v[2]), step = atoi(v[4]);
	uint64_t end = now_ns() + atoi(v[3]) * 1000000ull;
	pid_t pid[n];
	name_me("ni-main%.0d", 0);
	for (int i = 0; i < n; i++)
		if (!(pid[i] = fork())) {
			name_me(i < hogs ? "ni-h%d" : "ni-s%d", i);
			work_until(end, 20000, i < hogs ? 0 : 500);
			_exit(0);
		}
	for (unsigned k = 0; now_ns() < end; k++) {
		usleep(step);
		setpriority(PRIO_PROCESS, pid[k % n], values[k % (sizeof values / sizeof *values)]);
	}
	while (wait(NULL) > 0) ;
	return 0;
}
