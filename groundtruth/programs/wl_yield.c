/* wl_yield YIELDERS HOGS MS WORK: processes that call sched_yield() after every WORK
 * loop turns, beside hogs that never do, for MS ms of wall time. */
#include "wlcommon.h"
int main(int c, char **v)
{
	if (c < 5) { fprintf(stderr, "usage: wl_yield YIELDERS HOGS MS WORK\n"); return 2; }
	int yielders = atoi(v[1]), hogs = atoi(v[2]);
	uint64_t end = now_ns() + atoi(v[3]) * 1000000ull, wk = strtoull(v[4], 0, 0);
	name_me("yi-main%.0d", 0);
	for (int i = 0; i < yielders + hogs; i++)
		if (!fork()) {
			name_me(i < yielders ? "yi-y%d" : "yi-h%d", i);
			while (now_ns() < end) {
				work(wk);
				if (i < yielders) sched_yield();
			}
			_exit(0);
		}
	while (wait(NULL) > 0) ;
	return 0;
}
