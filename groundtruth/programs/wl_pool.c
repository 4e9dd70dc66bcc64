/* wl_pool THREADS JOBS WORK BURST: a pool of threads that take jobs from one queue
 * under a mutex and wait on a condition variable; the main thread puts BURST jobs
 * into it at once, waits until they are done and sleeps for a moment.  A job is
 * between one and four times WORK loop turns. */
#include "wlcommon.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER, none = PTHREAD_COND_INITIALIZER;
static int queued, left, stop;
static uint64_t wk;
static void *thread(void *a)
{
	int done = 0;
	name_me("po-%d", (int)(long)a);
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!queued && !stop) pthread_cond_wait(&some, &lock);
		if (!queued) break;
		int job = queued--;
		pthread_mutex_unlock(&lock);
		work(wk * (1 + job % 4));
		done++;
		pthread_mutex_lock(&lock);
		if (!--left) pthread_cond_signal(&none);
	}
	pthread_mutex_unlock(&lock);
	return (void *)(long)done;
}
int main(int c, char **v)
{
	if (c < 5) { fprintf(stderr, "usage: wl_pool THREADS JOBS WORK BURST\n"); return 2; }
	int n = atoi(v[1]), jobs = atoi(v[2]), burst = atoi(v[4]);
	wk = strtoull(v[3], 0, 0);
	pthread_t t[n];
	name_me("po-main%.0d", 0);
	for (long i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, thread, (void *)i)) die("pthread_create");
	uint64_t t0 = now_ns();
	for (int put = 0; put < jobs; put += burst) {
		pthread_mutex_lock(&lock);
		left = burst;
		for (int i = 0; i < burst; i++) { queued++; pthread_cond_signal(&some); }
		while (left) pthread_cond_wait(&none, &lock);
		pthread_mutex_unlock(&lock);
		usleep(300);
	}
	pthread_mutex_lock(&lock);
	stop = 1;
	pthread_cond_broadcast(&some);
	pthread_mutex_unlock(&lock);
	printf("pool ns %llu, jobs done by each:", (unsigned long long)(now_ns() - t0));
	for (int i = 0; i < n; i++) { void *done; pthread_join(t[i], &done); printf(" %ld", (long)done); }
	printf("\n");
	return 0;
}
