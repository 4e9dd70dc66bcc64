/* wl_server CLIENTS REQUESTS WORK: one server process and CLIENTS clients over
 * socket pairs.  A client sends a request, waits for the answer and thinks for half of
 * WORK loop turns; the server polls all sockets and does WORK turns for each request. */
#include "wlcommon.h"
#include <poll.h>
#include <sys/socket.h>
int main(int c, char **v)
{
	if (c < 4) { fprintf(stderr, "usage: wl_server CLIENTS REQUESTS WORK\n"); return 2; }
	int n = atoi(v[1]), requests = atoi(v[2]);
	uint64_t wk = strtoull(v[3], 0, 0), t0 = now_ns();
	struct pollfd fd[n];
	name_me("sv-server%.0d", 0);
	for (int i = 0; i < n; i++) {
		int s[2];
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, s)) die("socketpair");
		if (!fork()) {
			name_me("sv-c%d", i);
			close(s[0]);
			char b[64] = {0};
			for (int r = 0; r < requests; r++) {
				if (write(s[1], b, sizeof b) != sizeof b || read(s[1], b, sizeof b) != sizeof b) die("client");
				work(wk / 2);
			}
			_exit(0);
		}
		close(s[1]);
		fd[i] = (struct pollfd){ .fd = s[0], .events = POLLIN };
	}
	for (int open = n; open;) {
		if (poll(fd, n, -1) < 0) die("poll");
		for (int i = 0; i < n; i++) {
			char b[64];
			if (!fd[i].revents) continue;
			if (read(fd[i].fd, b, sizeof b) != sizeof b) { close(fd[i].fd); fd[i].fd = -1; open--; continue; }
			work(wk);
			if (write(fd[i].fd, b, sizeof b) != sizeof b) die("server");
		}
	}
	while (wait(NULL) > 0) ;
	printf("server clients %d requests %d ns %llu\n", n, requests, (unsigned long long)(now_ns() - t0));
	return 0;
}
