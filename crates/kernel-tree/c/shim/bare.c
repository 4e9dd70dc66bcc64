/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Symbols whose names or types change between kernels: defined by name alone, with no kernel header in sight, and
 * weak, so that a kernel that has its own keeps it.
 */
typedef unsigned long ul;
typedef unsigned int u32;
#define W __attribute__((weak))

void *lab_alloc(ul);
void lab_free(const void *);
void *lab_percpu_alloc(ul, ul);
void *lab_softirq_actions[32];
extern void *lab_kvfree_list[1024];
extern int lab_kvfree_count;

/* The type of the action is another from 6.12 on. */
W void open_softirq(int nr, void *action) { lab_softirq_actions[nr] = action; }

/* Slab caches: a size is all that is left of them. */
struct cache { ul size; };
W void *__kmalloc(ul n, u32 f) { return lab_alloc(n); }
W void *__kmalloc_noprof(ul n, u32 f) { return lab_alloc(n); }
W void *__kmalloc_node(ul n, u32 f, int d) { return lab_alloc(n); }
W void *__kmalloc_node_noprof(ul n, u32 f, int d) { return lab_alloc(n); }
W void *__kmalloc_cache_noprof(void *c, u32 f, ul n) { return lab_alloc(n); }
W void *__kmalloc_cache_node_noprof(void *c, u32 f, int d, ul n) { return lab_alloc(n); }
W void *kmalloc_trace(void *c, u32 f, ul n) { return lab_alloc(n); }
W void *kmalloc_node_trace(void *c, u32 f, int d, ul n) { return lab_alloc(n); }
W void *kmem_cache_alloc_trace(void *c, u32 f, ul n) { return lab_alloc(n); }
W void *kmem_cache_alloc_node_trace(void *c, u32 f, int d, ul n) { return lab_alloc(n); }
W void *kmem_cache_alloc(struct cache *c, u32 f) { return lab_alloc(c->size); }
W void *kmem_cache_alloc_noprof(struct cache *c, u32 f) { return lab_alloc(c->size); }
W void *kmem_cache_alloc_node(struct cache *c, u32 f, int d) { return lab_alloc(c->size); }
W void *kmem_cache_alloc_node_noprof(struct cache *c, u32 f, int d) { return lab_alloc(c->size); }
W void kmem_cache_free(void *c, void *p) { lab_free(p); }
W void kfree(void *p) { lab_free(p); }
W void kvfree(void *p) { lab_free(p); }
W void *kmem_cache_create(const char *n, u32 size, u32 al, u32 f, void *ctor)
{
	struct cache *c = lab_alloc(sizeof *c);

	c->size = size;
	return c;
}
W void *__kmem_cache_create_args(const char *n, u32 size, void *args, u32 f) { return kmem_cache_create(n, size, 0, f, 0); }
W char kmalloc_caches[1 << 14];
W void *pcpu_alloc_noprof(ul n, ul al, int r, u32 g) { return lab_percpu_alloc(n, al); }
W void *__alloc_percpu(ul n, ul al) { return lab_percpu_alloc(n, al); }
W void *__alloc_percpu_gfp(ul n, ul al, u32 g) { return lab_percpu_alloc(n, al); }
/* Up to 6.1 the second argument is an offset, later the object. */
W void kvfree_call_rcu(void *head, ul p)
{
	if (lab_kvfree_count < 1024)
		lab_kvfree_list[lab_kvfree_count++] = p < 4096 ? (char *)head - p : (char *)p;
}

/* Data that is only looked at. */
W u32 cpu_smt_num_threads = 1;
W int oops_in_progress, cpuhp_tasks_frozen, tick_nohz_active, node_reclaim_distance = 30;
W char static_key_initialized = 1;
W char irq_stat[1 << 16];
W char timers_migration_enabled[64];
W char memory_cgrp_subsys[1];
W const char hex_asc[] = "0123456789abcdef", hex_asc_upper[] = "0123456789ABCDEF";

/* Words that need no answer. */
W void __do_once_done(char *done, void *key, ul *flags, void *mod) { *done = 1; }
W void lockdep_assert_cpus_held(void) { }
W int kthread_park(void *t) { return 0; }
W void kthread_unpark(void *t) { }
W int numa_nearest_node(int node, u32 state) { return node; }
W void refcount_warn_saturate(void *r, int t) { }
W void add_taint(u32 f, int ok) { }
W int check_panic_on_warn(const char *o) { return 0; }
W int ___ratelimit(void *rs, const char *f) { return 0; }
W int __printk_ratelimit(const char *f) { return 0; }
W void tick_cancel_sched_timer(int cpu) { }
W void dump_stack(void) { }
W int queue_work_on(int cpu, void *wq, void *w) { return 1; } /* nothing that the scheduler queues is needed */
W void cgroup_task_dead(void *p) { }
W void __put_task_struct_rcu_cb(void *h) { }
W int task_work_add(void *p, void *w, int m) { return 0; }

/* Up to 6.2 the kernel's own word for this. */
void arch_smp_send_reschedule(int);
W void smp_send_reschedule(int cpu) { arch_smp_send_reschedule(cpu); }
/* Up to 5.14. */
W int printk(const char *f) { return 0; }
W int printk_deferred(const char *f) { return 0; }
/* Up to 5.18, for %p alone. */
W int get_random_bytes_arch(char *p, int n) { int i; for (i = 0; i < n; i++) p[i] = i; return n; }
W void get_random_bytes(char *p, ul n) { ul i; for (i = 0; i < n; i++) p[i] = i; }
/* The second argument is of 6.13. */
void sched_move_task(void *p, int for_autogroup);
void lab_sched_move_task(void *p) { sched_move_task(p, 0); }

/* Numbers that users can set: those that this kernel has as variables. */
#define TUNABLES(each) \
	each(sysctl_sched_latency) each(sysctl_sched_min_granularity) each(sysctl_sched_wakeup_granularity) \
	each(sysctl_sched_base_slice) each(sysctl_sched_migration_cost) each(sysctl_sched_nr_migrate) \
	each(llc_epoch_period) each(llc_epoch_affinity_timeout) each(llc_overaggr_pct) each(llc_imb_pct) \
	each(llc_aggr_tolerance)
#define DECLARE(name) extern W u32 name;
TUNABLES(DECLARE)
extern W int sched_update_scaling(void);
extern int strcmp(const char *, const char *);

int lab_tunable(const char *name, u32 value)
{
#define ENTRY(name) { #name, &name },
	const struct { const char *name; u32 *at; } all[] = { TUNABLES(ENTRY) };
	int i;

	for (i = 0; i < (int)(sizeof all / sizeof *all); i++) {
		if (!all[i].at || strcmp(all[i].name, name))
			continue;
		*all[i].at = value;
		if (sched_update_scaling)
			sched_update_scaling();
		return 1;
	}
	return 0;
}
