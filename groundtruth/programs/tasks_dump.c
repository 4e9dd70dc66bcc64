/* tasks_dump groups|tasks: every task, a line each, as `schedlab record` writes them: in which groups it is, or
 * its policy and CPUs. */
#include "wlcommon.h"
#include <dirent.h>
static char *text(const char *path)
{
	static char b[8192];
	int f = open(path, O_RDONLY), n = f < 0 ? -1 : read(f, b, sizeof b - 1);
	if (f >= 0) close(f);
	b[n < 0 ? 0 : n] = 0;
	return b;
}
/* What follows a word in a text, up to the end of the line. */
static void after(const char *in, const char *word, char *out, const char *otherwise)
{
	const char *at = strstr(in, word);
	sprintf(out, "%.*s", at ? (int)strcspn(at + strlen(word), "\n") : 200, at ? at + strlen(word) : otherwise);
}
static void task(const char *pid, const char *tid, int groups)
{
	static const char *policies[] = { "OTHER", "FIFO", "RR", "BATCH", "ISO", "IDLE", "DEADLINE", "EXT" };
	char path[600], comm[64], group[256], more[256];
	sprintf(path, "/proc/%s/task/%s/cgroup", pid, tid);
	after(text(path), "0::", group, "-");
	sprintf(path, "/proc/%s/task/%s/stat", pid, tid);
	/* A name may hold spaces and brackets, so the last bracket ends it. */
	char *stat = text(path), *begin = strchr(stat, '('), *end = strrchr(stat, ')');
	if (!end) return;
	sprintf(comm, "%.*s", (int)(end - begin - 1), begin + 1);
	if (groups) {
		int number, nice;
		sprintf(path, "/proc/%s/autogroup", pid);
		if (sscanf(text(path), "/autogroup-%d nice %d", &number, &nice) == 2) sprintf(more, "%d %d", number, nice);
		else strcpy(more, "- 0");
		printf("%s %s %s %s %s\n", tid, pid, group, more, comm);
		return;
	}
	int nice = 0, priority = 0, policy = 0, field = 2;
	for (char *save, *word = strtok_r(end + 1, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		field++;
		if (field == 19) nice = atoi(word);
		if (field == 40) priority = atoi(word);
		if (field == 41) policy = atoi(word);
	}
	sprintf(path, "/proc/%s/task/%s/status", pid, tid);
	after(text(path), "Cpus_allowed_list:\t", more, "-");
	printf("%s %s %s %d %d %s %s %s\n", tid, pid, policies[policy & 7], nice, priority, more, group, comm);
}
int main(int c, char **v)
{
	if (c < 2) { fprintf(stderr, "usage: tasks_dump groups|tasks\n"); return 2; }
	int groups = !strcmp(v[1], "groups");
	puts(groups ? "hierarchy 0\n# tid pid cgroup autogroup nice comm" : "# tid pid policy nice rt_priority cpus cgroup comm");
	DIR *proc = opendir("/proc");
	for (struct dirent *p; proc && (p = readdir(proc));) {
		char path[300];
		sprintf(path, "/proc/%s/task", p->d_name);
		DIR *tasks = atoi(p->d_name) ? opendir(path) : NULL;
		for (struct dirent *t; tasks && (t = readdir(tasks));)
			if (atoi(t->d_name)) task(p->d_name, t->d_name, groups);
		if (tasks) closedir(tasks);
	}
	return 0;
}
