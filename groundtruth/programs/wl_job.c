/* wl_job WORK PAUSES: a step of a build: WORK loop turns, with PAUSES short sleeps between, as for reading a file. */
#include "wlcommon.h"
int main(int c, char **v)
{
	if (c < 3) { fprintf(stderr, "usage: wl_job WORK PAUSES\n"); return 2; }
	uint64_t wk = strtoull(v[1], 0, 0);
	for (int n = atoi(v[2]), i = 0; i <= n; i++) {
		work(wk / (n + 1));
		if (i < n) usleep(200);
	}
	return 0;
}
