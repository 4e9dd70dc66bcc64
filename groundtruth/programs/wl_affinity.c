/* wl_affinity HOGS SLEEPERS MS STEPUS: hogs, and processes that work and sleep in turn, for MS ms
 * of wall time; every STEPUS us the main process gives the next of them other CPUs: one, two neighbours, or all. */
#include "wlcommon.h"
int main(int c, char **v)
{
	if (c < 5) { fprintf(stderr, "usage: wl_affinity HOGS SLEEPERS MS STEPUS\n"); return 2; }
	int hogs = atoi(v[1]), n = hogs + atoi(v[2]), step = atoi(v[4]), cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t end = now_ns() + atoi(v[3]) * 1000000ull;
	pid_t pid[n];
	name_me("af-main%.0d", 0);
	for (int i = 0; i < n; i++)
		if (!(pid[i] = fork())) {
			name_me(i < hogs ? "af-h%d" : "af-s%d", i);
			work_until(end, 20000, i < hogs ? 0 : 500);
			_exit(0);
		}
	for (int k = 0; now_ns() < end; k++) {
		cpu_set_t set;
		usleep(step);
		CPU_ZERO(&set);
		int width = k % 3 == 2 ? cpus : 1 + k % 3;
		for (int i = 0; i < width; i++) CPU_SET((k * 3 + i) % cpus, &set);
		sched_setaffinity(pid[k % n], sizeof set, &set);
	}
	while (wait(NULL) > 0) ;
	return 0;
}
