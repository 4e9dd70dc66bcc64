// SPDX-License-Identifier: GPL-2.0
// Tasks, and the boot: what start_kernel() and the CPUs' own starts do, as far as the scheduler sees it.
#include <linux/cpu.h>
#include <linux/hrtimer.h>
#include <linux/init_task.h>
#include <linux/kthread.h>
#include <linux/mmu_context.h>
#include <linux/sched/clock.h>
#include <linux/sched/hotplug.h>
#include <linux/sched/init.h>
#include <linux/sched/isolation.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/stop_machine.h>
#include "sched.h"
#include "shim.h"

extern unsigned int cpu_smt_num_threads;
struct mm_struct init_mm;
struct css_set *lab_css_set;
struct cgroup *lab_cgroup;
struct signal_struct *lab_signal;
struct sighand_struct *lab_sighand;
struct static_key_true cpu_cgrp_subsys_on_dfl_key = STATIC_KEY_TRUE_INIT;
struct static_key_true cpu_cgrp_subsys_enabled_key = STATIC_KEY_TRUE_INIT;
unsigned long init_stack[THREAD_SIZE / sizeof(long)];
struct smp_hotplug_thread *lab_stopper_thread;

struct lab_own *lab_own(struct task_struct *p)
{
	static struct lab_own boot;

	return p == &init_task ? &boot : (struct lab_own *)(p + 1);
}

bool set_kthread_struct(struct task_struct *p) { return true; }
void kthread_set_per_cpu(struct task_struct *p, int cpu) { lab_own(p)->bound_cpu = cpu + 1; }
bool kthread_is_per_cpu(struct task_struct *p) { return lab_own(p)->bound_cpu != 0; }
void put_task_stack(struct task_struct *p) { }
void put_task_struct_rcu_user(struct task_struct *p) { }
void __put_task_struct(struct task_struct *p) { }
void __mmdrop(struct mm_struct *m) { }
void __cgroup_account_cputime(struct cgroup *c, u64 delta) { }
void __cgroup_account_cputime_field(struct cgroup *c, enum cpu_usage_stat index, u64 delta) { }

/* A copy of the current task, as dup_task_struct() makes it. */
struct task_struct *lab_new_task(const char *name)
{
	struct task_struct *p = lab_alloc_priced(sizeof *p + sizeof(struct lab_own));

	*p = *(is_idle_task(lab_current) ? &init_task : lab_current);
	p->on_rq = p->on_cpu = 0;
	p->usage.refs.counter = 2;
	raw_spin_lock_init(&p->pi_lock);
	raw_spin_lock_init(&p->alloc_lock.rlock);
	INIT_LIST_HEAD(&p->tasks);
	p->signal = lab_signal;
	p->sighand = lab_sighand;
	rcu_assign_pointer(p->cgroups, lab_css_set);
#ifdef CONFIG_RT_MUTEXES
	p->pi_waiters = RB_ROOT_CACHED;
	p->pi_top_task = NULL;
	p->pi_blocked_on = NULL;
#endif
	p->cpus_ptr = &p->cpus_mask;
	p->mm = p->active_mm = &init_mm;
	p->flags = 0;
	strscpy(p->comm, name, sizeof p->comm);
	return p;
}

/* sched_fork() and what copy_process() calls after it, for a task that is a copy of the current one. */
void lab_fork_into(int cpu, struct task_struct *p)
{
	struct kernel_clone_args args = { };

	lab_enter(cpu);
	args.cset = rcu_dereference_raw(lab_current->cgroups);
	rcu_assign_pointer(p->cgroups, args.cset);
	p->thread_info.flags = 0;
	sched_fork(0, p);
#ifdef LAB_SCHED_CGROUP_FORK /* looked for by the build: stable kernels have taken it over */
	sched_cgroup_fork(p, &args);
#else
	sched_post_fork(p, &args);
#endif
}

/* Stopper threads are the tree's own; the driver runs their function when they are current. */
int smpboot_register_percpu_thread(struct smp_hotplug_thread *thread)
{
	int cpu, was = lab_cpu;

	for_each_possible_cpu(cpu) {
		struct task_struct *p = lab_new_task("migration");

		p->mm = NULL;
		lab_fork_into(was, p);
		p->flags |= PF_KTHREAD | PF_NO_SETAFFINITY;
		kthread_set_per_cpu(p, cpu);
		cpumask_copy(&p->cpus_mask, cpumask_of(cpu));
		p->nr_cpus_allowed = 1;
		p->__state = TASK_INTERRUPTIBLE;
		p->thread_info.cpu = cpu;
		*per_cpu_ptr(thread->store, cpu) = p;
		if (thread->create)
			thread->create(cpu);
		if (thread->unpark)
			thread->unpark(cpu);
	}
	lab_stopper_thread = thread;
	return 0;
}

static void set_up_machine(const struct lab_machine *m)
{
	const int *levels[4] = { m->smt, m->cluster, m->llc, m->package };
	int cpu, other, node, level;

	lab_machine = *m;
	for (cpu = 0; cpu < m->cpus; cpu++) {
		__cpumask_set_cpu(cpu, &__cpu_possible_mask);
		__cpumask_set_cpu(cpu, &__cpu_present_mask);
		lab_node_of[cpu] = m->node[cpu];
		lab_package_of[cpu] = m->package[cpu];
		lab_core_of[cpu] = m->smt[cpu];
		lab_capacity[cpu] = m->capacity[cpu];
		__cpumask_set_cpu(cpu, &lab_node_masks[m->node[cpu]]);
		for (level = 0; level < 4; level++) {
			for (other = 0; other < m->cpus; other++) {
				if (levels[level][cpu] == levels[level][other])
					__cpumask_set_cpu(other, &lab_masks[level][cpu]);
			}
		}
		lab_timers[cpu] = KTIME_MAX;
	}
	for (node = 0; node < m->nodes; node++) {
		for (other = 0; other < m->nodes; other++)
			lab_distance[node][other] = m->distance[node * m->nodes + other];
		for (level = 0; level < NR_NODE_STATES; level++)
			node_set(node, node_states[level]);
	}
	for (cpu = 0; cpu < m->cpus; cpu++)
		cpu_smt_num_threads = max(cpu_smt_num_threads, cpumask_weight(&lab_masks[0][cpu]));
	nr_cpu_ids = m->cpus;
	nr_node_ids = m->nodes;
}

static void set_up_init_task(void)
{
	lab_css_set = lab_alloc(sizeof *lab_css_set);
	lab_cgroup = lab_alloc(sizeof *lab_cgroup);
	lab_css_set->dfl_cgrp = lab_cgroup;
	lab_css_set->subsys[cpu_cgrp_id] = &root_task_group.css;
	lab_signal = lab_alloc(sizeof *lab_signal);
	lab_sighand = lab_alloc(sizeof *lab_sighand);
	init_task.thread_info.cpu = 0;
	rcu_assign_pointer(init_task.cgroups, lab_css_set);
	init_task.signal = lab_signal;
	init_task.sighand = lab_sighand;
	lab_irqs_off = 1;
	lab_cpu = 0;
	lab_current = &init_task;
	__cpumask_set_cpu(0, &__cpu_online_mask);
	atomic_set(&__num_online_cpus, 1);
	__cpumask_set_cpu(0, &__cpu_active_mask);
}

void lab_percpu_boot(int cpus);
extern struct static_key_false hrtimer_highres_enabled_key __attribute__((weak));
extern int hrtimers_cpu_starting(unsigned int cpu) __attribute__((weak));

int lab_boot(const struct lab_machine *m)
{
	extern initcall_t __lab_early_start[], __lab_early_end[];
	struct task_struct *init;
	initcall_t *call;
	int cpu;

	if (m->cpus > NR_CPUS || m->nodes > 64)
		return -1;
#if !AT_LEAST(6, 1)
	{
		int type, shift;

		for (type = 0; type < NR_KMALLOC_TYPES; type++)
			for (shift = 1; shift <= KMALLOC_SHIFT_HIGH; shift++)
				kmalloc_caches[type][shift] = kmem_cache_create("", shift == 1 ? 96 : shift == 2 ? 192 : 1u << shift, 0, 0, NULL);
	}
#endif
	lab_percpu_boot(m->cpus);
	set_up_machine(m);
	set_up_init_task();
	housekeeping_init();
	sched_init();
	node_reclaim_distance = m->reclaim_distance;
	sched_clock_init();
	kthread_set_per_cpu(&init_task, 0);
	for (cpu = 0; cpu < m->cpus; cpu++) {
		hrtimers_prepare_cpu(cpu);
		lab_cpu = cpu;
		if (hrtimers_cpu_starting)
			hrtimers_cpu_starting(cpu);
	}
	for (cpu = 1; cpu < m->cpus; cpu++) {
		struct task_struct *idle;

		lab_cpu = 0;
		lab_current = &init_task;
		idle = lab_new_task("idle");
		lab_fork_into(0, idle);
		idle->mm = NULL;
		idle->active_mm = &init_mm;
		init_idle(idle, cpu);
	}
	lab_cpu = 0;
	lab_current = &init_task;
	for (call = __lab_early_start; call < __lab_early_end; call++)
		(*call)();
	for (cpu = 1; cpu < m->cpus; cpu++) {
		lab_enter(cpu);
		sched_cpu_starting(cpu);
		__cpumask_set_cpu(cpu, &__cpu_online_mask);
		atomic_inc(&__num_online_cpus);
		lab_see_online(); /* sched_smt_present counts cores whose second thread comes */
		sched_cpu_activate(cpu);
		stop_machine_unpark(cpu);
	}
	lab_enter(0);
	lab_irqs_off = 0;
	/* In a kernel it is task 1 that goes on from here. */
	init = lab_new_task("init");
	init->policy = SCHED_NORMAL;
	init->sched_class = &fair_sched_class;
	lab_fork_into(0, init);
	init->__state = TASK_INTERRUPTIBLE;
	lab_current = init;
	sched_init_smp();
	lab_enter(0);
	system_state = SYSTEM_RUNNING;
	for (cpu = 0; cpu < m->cpus; cpu++) {
		lab_enter(cpu);
		/* As one that a kernel thread forked, which up to 5.13 is where it has the flag from. */
		lab_current->flags |= PF_IDLE | PF_KTHREAD;
		init_task.sched_class = lab_current->sched_class;
		lab_irqs_off = 1;
		hrtimer_run_queues();
		lab_irqs_off = 0;
	}
	/* From 7.1 on a worker turns this on when all CPUs have it. */
	if (&hrtimer_highres_enabled_key)
		static_key_enable((struct static_key *)&hrtimer_highres_enabled_key);
	lab_enter(0);
	init_idle(&init_task, 0);
	init_task.flags |= PF_IDLE;
	lab_current = &init_task;
	/* Every CPU has run its threads: one that never ran has no time since when it is idle, and is not seen as idle. */
	for (cpu = 0; cpu < m->cpus; cpu++) {
		lab_enter(0);
		preempt_count_add(1);
		wake_up_process(cpu_rq(cpu)->stop);
		preempt_count_sub(1);
		while (lab_pending(cpu) & LAB_IPI)
			lab_ipi(cpu);
		lab_resched(cpu);
		if (!lab_stopper(cpu))
			lab_fatal(0, "the stopper of CPU %d does not run as the kernel boots", cpu);
	}
	/* Each CPU deals out CPUs in turn, from the first on, whatever the boot was for which it did so before. */
	for (cpu = 0; cpu < m->cpus; cpu++) {
		lab_enter(cpu);
		cpumask_any_and_distribute(cpumask_of(0), cpumask_of(0));
	}
	lab_enter(0);
	lab_rcu_flush();
	return 0;
}
