/* topology_dump: prints the topology facts of the running system as "key value" lines. */
#include "wlcommon.h"
static void one(const char *path)
{
	char b[65536]; int f = open(path, O_RDONLY); if (f < 0) return;
	int r = read(f, b, sizeof b - 1); close(f); if (r < 0) return;
	b[r] = 0; while (r && b[r - 1] == '\n') b[--r] = 0;
	for (char *p = b; *p; p++) if (*p == '\n') *p = '|';
	printf("%s %s\n", path, b);
}
int main(void)
{
	char p[256];
	one("/sys/devices/system/cpu/online"); one("/sys/devices/system/cpu/possible"); one("/sys/devices/system/node/online");
	static const char *topo[] = {"physical_package_id", "die_id", "cluster_id", "core_id", "ppin", "thread_siblings_list", "core_cpus_list", "cluster_cpus_list", "die_cpus_list", "package_cpus_list", "core_siblings_list"};
	static const char *ca[] = {"level", "type", "id", "size", "shared_cpu_list", "ways_of_associativity", "coherency_line_size"};
	for (int i = 0; i < 4096; i++) {
		snprintf(p, sizeof p, "/sys/devices/system/cpu/cpu%d/topology", i);
		if (access(p, F_OK)) continue;
		for (unsigned k = 0; k < sizeof topo / sizeof *topo; k++) { snprintf(p, sizeof p, "/sys/devices/system/cpu/cpu%d/topology/%s", i, topo[k]); one(p); }
		for (int x = 0; x < 8; x++) for (unsigned k = 0; k < sizeof ca / sizeof *ca; k++) { snprintf(p, sizeof p, "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", i, x, ca[k]); one(p); }
		snprintf(p, sizeof p, "/sys/devices/system/cpu/cpu%d/cpu_capacity", i); one(p);
	}
	for (int i = 0; i < 256; i++) {
		snprintf(p, sizeof p, "/sys/devices/system/node/node%d/cpulist", i); one(p);
		snprintf(p, sizeof p, "/sys/devices/system/node/node%d/distance", i); one(p);
	}
	return 0;
}
