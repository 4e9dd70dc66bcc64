/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the shim share. */
#ifndef LAB_SHIM_H
#define LAB_SHIM_H
#include <linux/version.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/cpumask.h>
#include <linux/cgroup.h>
#include <linux/smpboot.h>
#include "lab.h"

#define AT_LEAST(a, b) (LINUX_VERSION_CODE >= KERNEL_VERSION(a, b, 0))
#if !AT_LEAST(5, 14)
#define __state state
#endif

/* What stands behind each task. */
struct lab_own {
	int id;        /* the driver's number + 1 */
	int bound_cpu; /* of a per-CPU kthread, + 1 */
	struct callback_head *work; /* to be done before it returns to user mode */
	bool in_process; /* its process counts it */
};
struct lab_own *lab_own(struct task_struct *p);
struct task_struct *lab_task(int id);
void lab_remember(int id, struct task_struct *p);
struct sched_domain *lab_searched(int cpu);
struct task_group;
struct task_group *lab_task_group(int group);
struct css_set *lab_group_set(int group);

void *lab_alloc(unsigned long n);
void *lab_alloc_priced(unsigned long n);
bool lab_is_variable(const void *p);
bool lab_is_unpriced(const void *p);
void lab_free(const void *p);
void lab_memory_reset(void);
void lab_rcu_flush(void);
void lab_fatal(const void *where, const char *format, ...) __attribute__((noreturn));

extern struct cpumask __cpu_dying_mask;
extern struct lab_machine lab_machine;
extern struct cpumask lab_masks[4][NR_CPUS], lab_node_masks[64];
extern unsigned long lab_capacity[NR_CPUS];
extern u64 lab_now_ns, lab_timers[NR_CPUS], lab_nr_switches;
extern unsigned char lab_ipis[NR_CPUS];
extern unsigned int lab_softirqs[NR_CPUS];
extern bool lab_tick_stopped[NR_CPUS];
extern struct smp_hotplug_thread *lab_stopper_thread;
extern struct css_set *lab_css_set;
extern struct cgroup *lab_cgroup;
extern struct signal_struct *lab_signal;
extern struct sighand_struct *lab_sighand;

void lab_leave_process(struct task_struct *p);

/* Events, in engine.c. */
void lab_note_ipi(int cpu, int call);
void lab_note_lock(const void *lock);
void lab_note_group(int group, const void *load_avg);
void lab_note_task(int id, const void *lock);
void lab_leave_call(const char *text, const void *where);

/* Puts us on a CPU, as the task that runs there. */
void lab_enter(int cpu);
/* What __schedule() leaves behind is the caller's; makes it that of the task that now runs. */
void lab_settle(void);
/* The idle loop begins anew. */
void lab_idles(void);
void lab_fork_into(int cpu, struct task_struct *p);
struct task_struct *lab_new_task(const char *name);
void lab_see_online(void);                         /* masks of caches and nodes: of CPUs that are online */
#endif
