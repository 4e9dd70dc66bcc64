// SPDX-License-Identifier: GPL-2.0
// What the driver asks for, by the kernel's public functions.
#include <linux/clockchips.h>
#include <linux/cpu.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/sched/clock.h>
#include <linux/sched/cputime.h>
#include <linux/sched/nohz.h>
#include <linux/sched/signal.h>
#include <linux/sched/hotplug.h>
#include <linux/smp.h>
#include <linux/stop_machine.h>
#include <linux/wait.h>
#include <uapi/linux/sched/types.h>
#include "sched.h"
#include "shim.h"

extern void *lab_softirq_actions[];
extern void nohz_run_idle_balance(int cpu) __attribute__((weak)); /* from 5.13 */
extern void lab_sched_move_task(struct task_struct *p);

void lab_enter(int cpu)
{
	lab_cpu = cpu;
	lab_current = cpu_curr(cpu);
}

void lab_settle(void)
{
	lab_current->thread_info.preempt_count = is_idle_task(lab_current) ? PREEMPT_DISABLED : PREEMPT_ENABLED;
	lab_irqs_off = 0;
}

void lab_idles(void)
{
	if (is_idle_task(lab_current) && nohz_run_idle_balance)
		nohz_run_idle_balance(lab_cpu);
}

static void irq_begin(void)
{
	preempt_count_add(HARDIRQ_OFFSET);
	lab_irqs_off = 1;
}

static void irq_end(void)
{
	lab_irqs_off = 0;
	preempt_count_sub(HARDIRQ_OFFSET);
}

/* ---- tasks by number ---- */
static struct task_struct **tasks;
static int ntasks, room;

struct task_struct *lab_task(int id)
{
	if (id < 0 || id >= ntasks || !tasks[id])
		lab_fatal(0, "the driver speaks of task %d, which it did not make", id);
	return tasks[id];
}

void lab_remember(int id, struct task_struct *p)
{
	if (id >= room) {
		int more = max(id + 1, 2 * room + 64);
		struct task_struct **table = lab_alloc(more * sizeof *table);

		if (tasks)
			memcpy(table, tasks, ntasks * sizeof *table);
		lab_free(tasks);
		tasks = table;
		room = more;
	}
	ntasks = max(ntasks, id + 1);
	tasks[id] = p;
	lab_own(p)->id = id + 1;
	lab_note_task(id, &p->pi_lock);
}

static int id_of(int cpu, struct task_struct *p)
{
	if (p == cpu_rq(cpu)->idle)
		return LAB_IDLE;
	if (p == cpu_rq(cpu)->stop)
		return LAB_STOPPER;
	return lab_own(p)->id ? lab_own(p)->id - 1 : LAB_OTHER;
}

void lab_fork(int cpu, int id, int kthread)
{
	struct task_struct *p, *parent;
	int prio;

	lab_enter(cpu);
	parent = lab_current;
	p = lab_new_task("task");
	prio = parent->normal_prio;
	if (is_idle_task(parent)) { /* not a child of the idle task: as if of task 1 */
		p->static_prio = p->normal_prio = p->prio = NICE_TO_PRIO(0);
		p->policy = SCHED_NORMAL;
		p->rt_priority = 0;
		p->sched_class = &fair_sched_class;
		p->se.load.weight = scale_load(1024);
		p->se.load.inv_weight = 4194304;
		p->wakee_flips = 0;
		p->wakee_flip_decay_ts = 0;
		p->last_wakee = NULL;
		/* As init_task's: never narrowed. With one CPU no task counts as one that could move. */
		p->nr_cpus_allowed = cpumask_weight(cpu_possible_mask) > 1 ? NR_CPUS : 1;
		cpumask_setall(&p->cpus_mask);
		parent->normal_prio = NICE_TO_PRIO(0);
	}
	if (kthread) {
		p->flags |= PF_KTHREAD;
		p->mm = NULL;
	}
	lab_fork_into(cpu, p);
	parent->normal_prio = prio;
	if (kthread)
		p->flags |= PF_KTHREAD;
	lab_remember(id, p);
}

/* It is the driver that says when the CPU returns to where it may be preempted. */
int lab_wake_new(int cpu, int id)
{
	struct task_struct *p = lab_task(id);

	lab_enter(cpu);
	preempt_count_add(1);
	wake_up_new_task(p);
	preempt_count_sub(1);
	return task_cpu(p);
}

int lab_wake(int cpu, int id, int flags, int in_irq)
{
	struct wait_queue_entry entry = { .private = lab_task(id) };
	int woken, wake_flags = flags & 1 ? WF_SYNC : 0;

#ifdef WF_CURRENT_CPU
	wake_flags |= flags & 2 ? WF_CURRENT_CPU : 0;
#endif
	lab_rcu_flush();
	lab_enter(cpu);
	if (in_irq)
		irq_begin();
	else
		preempt_count_add(1);
	woken = default_wake_function(&entry, TASK_NORMAL, wake_flags, NULL);
	if (in_irq)
		irq_end();
	else
		preempt_count_sub(1);
	return woken ? (int)task_cpu(lab_task(id)) : -1;
}

int lab_sleep(int cpu)
{
	struct task_struct *p;

	lab_enter(cpu);
	p = lab_current;
	p->__state = TASK_INTERRUPTIBLE;
	schedule();
	lab_settle();
	lab_idles();
	return lab_current != p;
}

void lab_exit(int cpu)
{
	int id;

	lab_enter(cpu);
	id = lab_own(lab_current)->id - 1;
	lab_leave_process(lab_current);
	lab_current->__state = TASK_DEAD;
	schedule();
	lab_settle();
	lab_idles();
	if (id >= 0)
		tasks[id] = NULL;
}

void lab_yield(int cpu)
{
	lab_enter(cpu);
	yield();
	lab_idles();
	lab_settle();
}

int lab_resched(int cpu)
{
	struct task_struct *p;

	lab_enter(cpu);
	p = lab_current;
	if (!need_resched())
		return 0;
	if (is_idle_task(p)) {
		schedule_idle();
	} else {
		lab_irqs_off = 1;
		preempt_schedule_irq();
	}
	lab_settle();
	lab_idles();
	return lab_current != p;
}

/* As exit_to_user_mode_loop() does. */
int lab_resched_lazy(int cpu)
{
	struct task_struct *p;

	lab_enter(cpu);
	p = lab_current;
	if (is_idle_task(p) || !(lab_pending(cpu) & (LAB_RESCHED | LAB_RESCHED_LAZY)))
		return 0;
	schedule();
	lab_settle();
	lab_idles();
	return lab_current != p;
}

#ifdef CONFIG_PREEMPT_DYNAMIC
/* Nobody asks: it is the driver that says when a CPU returns from an interrupt. */
DEFINE_STATIC_KEY_TRUE(sk_dynamic_irqentry_exit_cond_resched);
#endif

int lab_preempt(const char *model)
{
#ifdef CONFIG_PREEMPT_DYNAMIC
	int mode = sched_dynamic_mode(model);

	if (mode >= 0)
		sched_dynamic_update(mode);
	return mode >= 0;
#else
	/* The others are a matter of the driver alone: where it honours a request. */
	return !!strcmp(model, "lazy");
#endif
}

void lab_tick(int cpu)
{
	lab_enter(cpu);
	irq_begin();
#if AT_LEAST(6, 10)
	sched_tick();
#else
	scheduler_tick();
#endif
	irq_end();
}

void lab_ipi(int cpu)
{
	lab_enter(cpu);
	lab_ipis[cpu] = 0;
	irq_begin();
	generic_smp_call_function_single_interrupt();
	scheduler_ipi();
	irq_end();
}

void lab_timer(int cpu)
{
	static struct clock_event_device device;

	lab_enter(cpu);
	lab_timers[cpu] = KTIME_MAX;
	irq_begin();
	hrtimer_interrupt(&device);
	irq_end();
}

u64 lab_timer_at(int cpu) { return lab_timers[cpu]; }

int lab_pending(int cpu)
{
	struct task_struct *p = cpu_curr(cpu);

	return (test_tsk_need_resched(p) ? LAB_RESCHED : 0) | (lab_ipis[cpu] ? LAB_IPI : 0) |
	       (lab_softirqs[cpu] ? LAB_SOFTIRQ : 0) | (p == cpu_rq(cpu)->stop ? LAB_STOPPER_RUNS : 0) |
	       (test_tsk_thread_flag(p, TIF_NEED_RESCHED_LAZY) ? LAB_RESCHED_LAZY : 0);
}

void lab_softirq(int cpu)
{
	unsigned int pending;

	lab_enter(cpu);
	lab_rcu_flush();
	pending = lab_softirqs[cpu];
	lab_softirqs[cpu] = 0;
	preempt_count_add(SOFTIRQ_OFFSET);
	while (pending) {
		int nr = __builtin_ctz(pending);

		pending &= pending - 1;
		((void (*)(void *))lab_softirq_actions[nr])(NULL);
	}
	preempt_count_sub(SOFTIRQ_OFFSET);
}

int lab_stopper(int cpu)
{
	if (!lab_stopper_works(cpu))
		return 0;
	lab_current->__state = TASK_INTERRUPTIBLE;
	schedule();
	lab_settle();
	lab_idles();
	return 1;
}

void lab_nohz_enter(int cpu)
{
	lab_enter(cpu);
	lab_tick_stopped[cpu] = 1;
	nohz_balance_enter_idle(cpu);
}

void lab_nohz_exit(int cpu) { lab_tick_stopped[cpu] = 0; }

void lab_nice(int cpu, int id, int nice)
{
	struct task_struct *p = lab_task(id);

	lab_enter(cpu);
	preempt_count_add(1);
	set_user_nice(p, nice);
	preempt_count_sub(1);
}

/* A forked task gets attributes of its own, as if the task that forked it had had them. reweight_entity() takes its
 * average off the queue, where a new one is not yet. Even if that is 0, dequeue_load_avg() cuts the sum of the queue to 32
 * bits. */
static struct sched_avg kept;

void lab_forget_average(int id)
{
	struct sched_entity *se = &lab_task(id)->se;

	kept = se->cfs_rq->avg;
	memset(&se->avg, 0, sizeof se->avg);
}

void lab_begin_average(int id)
{
	struct sched_entity *se = &lab_task(id)->se;

	se->cfs_rq->avg.load_avg = kept.load_avg;
	se->cfs_rq->avg.load_sum = kept.load_sum;
	init_entity_runnable_average(se);
}

int lab_policy(int cpu, int id, int policy, int nice_or_prio, u64 runtime, u64 deadline, u64 period)
{
	struct sched_attr attr = {
		.size = sizeof attr, .sched_policy = policy,
		.sched_runtime = runtime, .sched_deadline = deadline, .sched_period = period,
	};
	struct task_struct *p = lab_task(id);
	int error;

	if (policy == SCHED_FIFO || policy == SCHED_RR)
		attr.sched_priority = nice_or_prio;
	else
		attr.sched_nice = nice_or_prio;
	lab_enter(cpu);
	preempt_count_add(1);
	error = sched_setattr_nocheck(p, &attr);
	preempt_count_sub(1);
	return error;
}

/* ---- CPUs that go and come: what kernel/cpu.c has them do, the stopper last ---- */
extern int hrtimers_cpu_dying(unsigned int cpu);
extern int hrtimers_cpu_starting(unsigned int cpu) __attribute__((weak));

/* The masks of caches and nodes lose a CPU that is offline, as on x86. */
void lab_see_online(void)
{
	static struct cpumask masks[4][NR_CPUS], nodes[64];
	static bool kept;
	int cpu, level, node;

	if (!kept) {
		memcpy(masks, lab_masks, sizeof masks);
		memcpy(nodes, lab_node_masks, sizeof nodes);
		kept = true;
	}
	for (level = 0; level < 4; level++) {
		for_each_possible_cpu(cpu) {
			cpumask_and(&lab_masks[level][cpu], &masks[level][cpu], cpu_online_mask);
			__cpumask_set_cpu(cpu, &lab_masks[level][cpu]);
		}
	}
	for (node = 0; node < nr_node_ids; node++) {
		/* vmstat_cpu_online(), vmstat_cpu_dead() */
		if (cpumask_and(&lab_node_masks[node], &nodes[node], cpu_online_mask))
			node_set(node, node_states[N_CPU]);
		else
			node_clear(node, node_states[N_CPU]);
	}
}

static int take_cpu_down(void *unused)
{
	int cpu = lab_cpu;

	__cpumask_clear_cpu(cpu, &__cpu_online_mask);
	atomic_dec(&__num_online_cpus);
	lab_see_online();
	hrtimers_cpu_dying(cpu);
	sched_cpu_dying(cpu);
	lab_timers[cpu] = KTIME_MAX;
	return 0;
}

int lab_offline(int cpu)
{
	int error;

	lab_enter(cpu);
	preempt_count_add(1);
	__cpumask_set_cpu(cpu, &__cpu_dying_mask);
	error = sched_cpu_deactivate(cpu);
	if (error)
		__cpumask_clear_cpu(cpu, &__cpu_dying_mask);
	else if (AT_LEAST(5, 11) && !is_idle_task(lab_current))
		set_tsk_need_resched(lab_current); /* as the thread that takes the CPU down would do by waiting */
	preempt_count_sub(1);
	lab_rcu_flush();
	return error;
}

/* The stopper of a CPU gets something to do. */
static void ask_stopper(int cpu, cpu_stop_fn_t fn, struct cpu_stop_work *work)
{
	lab_enter(cpu);
	preempt_count_add(1);
	stop_one_cpu_nowait(cpu, fn, NULL, work);
	preempt_count_sub(1);
}

void lab_take_down(int cpu)
{
	static struct cpu_stop_work works[NR_CPUS];

	ask_stopper(cpu, take_cpu_down, &works[cpu]);
}

static int nothing(void *unused) { return 0; }

void lab_wake_stopper(int cpu)
{
	static struct cpu_stop_work works[NR_CPUS];

	ask_stopper(cpu, nothing, &works[cpu]);
}

void lab_starting(int cpu)
{
	lab_enter(cpu);
	preempt_count_add(1);
	hrtimers_prepare_cpu(cpu);
	if (hrtimers_cpu_starting)
		hrtimers_cpu_starting(cpu);
	sched_cpu_starting(cpu);
	__cpumask_set_cpu(cpu, &__cpu_online_mask);
	atomic_inc(&__num_online_cpus);
	lab_see_online();
	preempt_count_sub(1);
}

void lab_activate(int cpu)
{
	lab_enter(cpu);
	preempt_count_add(1);
	__cpumask_clear_cpu(cpu, &__cpu_dying_mask);
	sched_cpu_activate(cpu);
	lab_irqs_off = 1;
	hrtimer_run_queues();
	lab_irqs_off = 0;
	preempt_count_sub(1);
	lab_rcu_flush();
}

/* ---- groups: a css_set per group is all that the scheduler asks of cgroups ---- */
#define GROUPS 4096
static struct group { struct task_group *tg; struct css_set *set; } groups[GROUPS];
static int ngroups;

struct task_group *lab_task_group(int group)
{
	if (group >= ngroups)
		lab_fatal(0, "the driver speaks of group %d, which it did not make", group);
	return group < 0 ? &root_task_group : groups[group].tg;
}

struct css_set *lab_group_set(int group)
{
	lab_task_group(group);
	return group < 0 ? lab_css_set : groups[group].set;
}

int lab_group(int parent, u64 shares)
{
	struct task_group *tg, *above = lab_task_group(parent);
	struct css_set *set;

	if (ngroups == GROUPS)
		return -1;
	tg = sched_create_group(above);
	if (IS_ERR(tg))
		return -1;
	sched_online_group(tg, above);
	sched_group_set_shares(tg, scale_load(shares));
	set = lab_alloc(sizeof *set);
	set->dfl_cgrp = lab_cgroup;
	set->subsys[cpu_cgrp_id] = &tg->css;
	groups[ngroups].tg = tg;
	groups[ngroups].set = set;
	lab_note_group(ngroups, &tg->load_avg);
	return ngroups++;
}

void lab_group_shares(int group, u64 shares)
{
	sched_group_set_shares(lab_task_group(group), scale_load(shares));
}

static struct cftype *group_file(const char *name)
{
	struct cftype *file;

	for (file = cpu_cgrp_subsys.legacy_cftypes; file && file->name[0]; file++) {
		if (!strcmp(file->name, name))
			return file;
	}
	lab_fatal(0, "this kernel's groups have no file %s", name);
}

int lab_group_quota(int group, u64 period_us, long long quota_us)
{
	struct cgroup_subsys_state *css = &lab_task_group(group)->css;
	struct cftype *period = group_file("cfs_period_us"), *quota = group_file("cfs_quota_us");
	int error = period->write_u64(css, period, period_us);

	return error ? error : quota->write_s64(css, quota, quota_us);
}

void lab_move(int cpu, int id, int group)
{
	struct task_struct *p = lab_task(id);

	lab_enter(cpu);
	preempt_count_add(1);
	rcu_assign_pointer(p->cgroups, lab_group_set(group));
	lab_sched_move_task(p);
	preempt_count_sub(1);
}

/* ---- questions ---- */
int lab_curr(int cpu) { return id_of(cpu, cpu_curr(cpu)); }
int lab_task_cpu(int id) { return task_cpu(lab_task(id)); }
int lab_nr_running(int cpu) { return cpu_rq(cpu)->nr_running; }
u64 lab_switches(void) { return lab_nr_switches; }
const char *lab_release(void)
{
	return __stringify(LINUX_VERSION_MAJOR) "." __stringify(LINUX_VERSION_PATCHLEVEL) "." __stringify(LINUX_VERSION_SUBLEVEL);
}

/* ---- features: constants in kernels that were not built to have them changed ---- */
int lab_feature(const char *name, int on)
{
#if defined(CONFIG_SCHED_DEBUG) || AT_LEAST(6, 15)
	static const char *const names[] = {
#define SCHED_FEAT(name, enabled) #name,
#include "features.h"
#undef SCHED_FEAT
	};
	int i, was;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i], name))
			continue;
		was = sysctl_sched_features >> i & 1;
		sysctl_sched_features = (sysctl_sched_features & ~(1u << i)) | (on ? 1u << i : 0);
		return was;
	}
#endif
	return -1;
}
