/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The library as its driver sees it. CPUs, tasks and groups are numbers: tasks and groups those that the driver
 * gave, groups from 0 with -1 for the root. Times are ns. No kernel header is needed.
 */
#ifndef LAB_H
#define LAB_H
typedef unsigned long long lab_u64;

struct lab_machine {
	int cpus, nodes;
	/* For each CPU: its first sibling, cluster, LLC, package and node, and its capacity of 1024. */
	const int *smt, *cluster, *llc, *package, *node, *capacity;
	const int *distance; /* nodes x nodes */
	int reclaim_distance; /* beyond it forks and wake-ups stay on their node */
};

/* Who runs: a task of the driver, or one of these. */
enum { LAB_IDLE = -1, LAB_STOPPER = -2, LAB_OTHER = -3 };
/* What lab_pending() says. */
enum { LAB_RESCHED = 1, LAB_IPI = 2, LAB_SOFTIRQ = 4, LAB_STOPPER_RUNS = 8, LAB_RESCHED_LAZY = 16 };

/* What ends a run: called with a sentence and an address in the library, or 0; must not return. */
typedef void (*lab_fatal_fn)(const char *text, const void *where);
void lab_on_fatal(lab_fatal_fn fn);
const char *lab_release(void);

int lab_boot(const struct lab_machine *machine); /* 0, or -1: too many CPUs or nodes */
void lab_close(void);
void lab_now(lab_u64 ns);
void lab_seed(lab_u64 seed);           /* of get_random_u32() */
void lab_cpu_seed(int cpu, lab_u64 seed); /* of the scheduler's own generator, one per CPU: xorshift64* */
lab_u64 lab_cpu_random(int cpu); /* the state of that generator */
int lab_feature(const char *name, int on);    /* sched_feat: what it was, -1: none, or a constant */
int lab_tunable(const char *name, unsigned int value); /* 0: this kernel has no such variable */
int lab_warnings(const char **text);   /* how many WARN()s so far, and the first */

void lab_fork(int cpu, int task, int kthread);
int lab_wake_new(int cpu, int task);                /* the CPU chosen */
int lab_wake(int cpu, int task, int flags, int in_irq); /* the CPU chosen, -1: was awake; flags 1: sync, 2: to this CPU */
int lab_sleep(int cpu);                             /* the current task blocks; 1: another now runs */
void lab_exit(int cpu);
void lab_yield(int cpu);
int lab_resched(int cpu);                           /* honours a request to reschedule; 1: switched */
int lab_resched_lazy(int cpu);                      /* a lazy one too, as on the way to user mode; 1: switched */
int lab_preempt(const char *model);                 /* from now on this model, as of preempt=; 0: this kernel has no such one */
void lab_tick(int cpu);
void lab_ipi(int cpu);
void lab_timer(int cpu);                            /* the hrtimer interrupt */
lab_u64 lab_timer_at(int cpu);                      /* when that is due */
int lab_pending(int cpu);
void lab_softirq(int cpu);
int lab_stopper(int cpu);                           /* the stopper's work, if it runs; 1: it did */
void lab_nohz_enter(int cpu);                       /* an idle CPU stops its tick */
void lab_nohz_exit(int cpu);
int lab_offline(int cpu);                           /* a CPU begins to leave; or -errno */
void lab_take_down(int cpu);                        /* it has nothing left to run: the next work of its stopper takes it down */
void lab_wake_stopper(int cpu);                     /* with nothing to do */
void lab_starting(int cpu);                         /* a CPU is there again, for kernel threads bound to it */
void lab_activate(int cpu);                         /* it takes tasks again */
void lab_steal(int cpu, lab_u64 ns);                /* a hypervisor takes time; the CPU sees it when it reads its clock */
void lab_join_process(int task, int process);       /* as of fork() or exec(); processes are numbers of the driver */
int lab_sched_cache(int on);                        /* cache-aware balancing; 0: this kernel has none */
void lab_exiting(int task);
void lab_bind(int task, int cpu);                   /* the kernel binds a sleeping thread of its own to a CPU */
void lab_per_cpu(int task, int cpu);                /* the kernel has bound this thread of its own to a CPU; -1: no longer */
void lab_nice(int cpu, int task, int nice);
void lab_forget_average(int task);
void lab_begin_average(int task);
int lab_policy(int cpu, int task, int policy, int nice_or_prio, lab_u64 runtime, lab_u64 deadline, lab_u64 period);
int lab_group(int parent, lab_u64 shares);          /* its number, or -1 */
void lab_group_shares(int group, lab_u64 shares);
int lab_group_quota(int group, lab_u64 period_us, long long quota_us); /* 0 or -errno */
void lab_move(int cpu, int task, int group);

int lab_curr(int cpu);
int lab_task_cpu(int task);
int lab_nr_running(int cpu);
lab_u64 lab_switches(void);

/* State for comparisons: see state.c for what stands where. */
enum { LAB_TASK_WORDS = 32, LAB_CPU_WORDS = 47, LAB_DOMAIN_WORDS = 16, LAB_GROUP_WORDS = 44, LAB_PROCESS_WORDS = 6 };
void lab_state_task(int task, lab_u64 *out);
void lab_state_cpu(int cpu, lab_u64 *out);
int lab_state_domain(int cpu, int level, lab_u64 *out, unsigned long *span); /* 0: there is none; groups are counted with a span only */
void lab_state_group(int group, int cpu, lab_u64 *out);
void lab_state_process(int process, int cpu, lab_u64 *out);

/* For an engine that runs whole workloads: see engine.c. */
struct lab_event { int kind, a, b, c; };
enum { LAB_E_RESCHED, LAB_E_CALL, LAB_E_RQ_LOCK, LAB_E_LINE, LAB_E_SCAN, LAB_E_SELECTED, LAB_E_MIGRATED, LAB_E_STOPPER, LAB_E_LOOKED, LAB_E_TG_LOAD_AVG, LAB_E_ATOMIC, LAB_E_TASK };
/* So many lines of atomics are distinguished. */
#define LAB_ATOMICS 1024
void lab_note(int on);
void lab_at_idle(int cpu, int pending);
int lab_events(struct lab_event **out);             /* since last asked */
int lab_affinity_of(int cpu, int task, const unsigned long *mask); /* 1: the stopper must move it; or -errno */
int lab_exec_of(int cpu);                           /* the same for exec() */
int lab_stopper_works(int cpu);
void lab_fork_of(int cpu, int task, int kthread, int parent, int group); /* parent -1: task 1 */
void lab_sleeps(int task);
void lab_is_stopper(int cpu, int task);
void lab_recent_cpu(int task, int cpu);
void lab_hide_queued(int cpu, int hidden);          /* wakers see it as idle although a task is queued there */
int lab_overload(int cpu);                          /* of its root domain */
void lab_set_overload(int cpu, int on);
int lab_wake_new_at(int cpu, int task, int at);     /* at -1: where the kernel says */
void lab_left(int task);                            /* the switch away from it is over */
int lab_wake_of(int cpu, int task, int flags, int in_irq, int pending);
int lab_schedule(int cpu, int how, int pending);    /* 1: who left is still queued */
void lab_balance(int cpu);                          /* the softirq */
void lab_yields(int cpu);                           /* but does not call schedule() yet */
void lab_freq_scale(int cpu, lab_u64 scale);
void lab_idle_state(int cpu, long long exit_ns);    /* negative: awake */
struct lab_prices { int scan_cpu, pass, pass_cpu, pass_task, blocked_update; }; /* ns */
void lab_set_prices(const struct lab_prices *these);
void lab_past_cpu(int cpu, lab_u64 idle_stamp, lab_u64 next_balance, lab_u64 idle_scan, lab_u64 balance_scan,
		  int idle_cores);
int lab_past_domain(int cpu, int level, lab_u64 last_balance, lab_u64 interval, lab_u64 newidle_cost, lab_u64 decayed);
int lab_group_idle(int group, int idle);            /* 0, or the kernel has no such groups */
int lab_exit_to_user(int cpu);                      /* 1: the task must make way */
void lab_read(int task, lab_u64 *out);              /* 9 words */
#endif
