// SPDX-License-Identifier: GPL-2.0
// Processes, as far as the scheduler sees them: from 7.2 on, threads share a record of the caches where they run.
#include <linux/cacheinfo.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include "sched.h"
#include "shim.h"

#if defined(CONFIG_SCHED_CACHE) && defined(LAB_SCHED_CACHE)

static struct lab_process { struct signal_struct *signal; struct mm_struct *mm; } *processes;
static int room;

static struct lab_process *process_of(int number)
{
	if (number >= room) {
		int more = max(number + 1, 2 * room + 64);
		struct lab_process *table = lab_alloc(more * sizeof *table);

		if (processes)
			memcpy(table, processes, room * sizeof *table);
		lab_free(processes);
		processes = table;
		room = more;
	}
	return &processes[number];
}

/* What fork() and exec() do when a task gets memory: its own, or that of the threads that are there. */
void lab_join_process(int id, int number)
{
	struct task_struct *p = lab_task(id);
	struct lab_process *process = process_of(number);

	if (p->flags & PF_KTHREAD)
		return;
	lab_leave_process(p);
	if (!process->mm) {
		process->signal = lab_alloc(sizeof *process->signal);
		process->mm = lab_alloc_priced(sizeof *process->mm);
		atomic_set(&process->mm->mm_count, 1); /* never 0: idle CPUs borrow it */
	}
	if (!process->signal->nr_threads++)
		mm_alloc_sched(process->mm);
	p->signal = process->signal;
	p->mm = p->active_mm = process->mm;
	sched_cache_fork(p);
	lab_own(p)->in_process = true;
}

/* What exit_mm() and release_task() do. */
void lab_leave_process(struct task_struct *p)
{
	if (!lab_own(p)->in_process)
		return;
	lab_own(p)->in_process = false;
	sched_cache_exit_mm(p);
	if (!--p->signal->nr_threads)
		mm_destroy_sched(p->mm);
}

int lab_sched_cache(int on)
{
	sysctl_sched_cache_user = on;
	sched_cache_active_set();
	return 1;
}

/* Its footprint is only known to NUMA balancing, so sizes of caches play no part. */
struct cacheinfo *get_cpu_cacheinfo_llc(unsigned int cpu) { return NULL; }

enum { P_CPU, P_EPOCH, P_NEXT_SCAN, P_NR_RUNNING_AVG, P_NR_THREADS, P_RUNTIME };

void lab_state_process(int number, int cpu, u64 *o)
{
	struct lab_process *process = process_of(number);
	struct sched_cache_group *grp = process->mm ? process->mm->sched_cache_grp : NULL;

	memset(o, 0, LAB_PROCESS_WORDS * sizeof *o);
	if (!grp)
		return;
	o[P_CPU] = grp->cpu + 1;
	o[P_EPOCH] = grp->epoch;
	o[P_NEXT_SCAN] = grp->next_scan;
	o[P_NR_RUNNING_AVG] = grp->nr_running_avg;
	o[P_NR_THREADS] = process->signal->nr_threads;
	o[P_RUNTIME] = per_cpu_ptr(grp->pcpu_sched, cpu)->runtime;
}

#else
void lab_join_process(int id, int number) { }
void lab_leave_process(struct task_struct *p) { }
int lab_sched_cache(int on) { return 0; }
void lab_state_process(int number, int cpu, u64 *o) { memset(o, 0, LAB_PROCESS_WORDS * sizeof *o); }
#endif
