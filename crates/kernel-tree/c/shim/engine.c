// SPDX-License-Identifier: GPL-2.0
// What an engine asks for that runs whole workloads: switches of every kind, choices that it makes itself, calls that block,
// and what a call did and looked at, as a list of events.
#include <linux/cpuidle.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/smpboot.h>
#include <linux/task_work.h>
#include <linux/version.h>
#include <uapi/linux/sched/types.h>
#include "sched.h"
#include "shim.h"

/* ---- events ---- */
#define EVENTS 65536
static struct lab_event events[EVENTS];
static int nevents;
unsigned char lab_noting;

static void note(int kind, int a, int b, int c)
{
	if (!lab_noting)
		return;
	if (nevents == EVENTS)
		lab_fatal(0, "one call of the scheduler did more than %d things; it hangs, or moves tasks in a circle", EVENTS);
	events[nevents++] = (struct lab_event) { kind, a, b, c };
}

int lab_events(struct lab_event **out)
{
	int n = nevents;

	nevents = 0;
	*out = events;
	return n;
}

static int id_of(struct task_struct *p)
{
	return p == cpu_rq(task_cpu(p))->stop ? LAB_STOPPER : lab_own(p)->id - 1;
}

void lab_note_ipi(int cpu, int call)
{
	note(call ? LAB_E_CALL : LAB_E_RESCHED, cpu, 0, 0);
}

/* ---- CPUs that are looked at ---- */
unsigned int lab_call, lab_looked_at, lab_last_look[NR_CPUS];
short lab_looks[NR_CPUS];
unsigned long lab_freq_scales[NR_CPUS] = { [0 ... NR_CPUS - 1] = 1024 };
static struct lab_prices prices;

void lab_set_prices(const struct lab_prices *these) { prices = *these; }

static void begin_looking(void)
{
	lab_call++;
	lab_looked_at = 0;
}

/* Notes which CPUs were looked at, a word of 32 CPUs at a time. */
static void note_looks(void)
{
	unsigned int words[(NR_CPUS + 31) / 32] = {}, i;

	for (i = 0; i < lab_looked_at; i++)
		words[lab_looks[i] / 32] |= 1u << lab_looks[i] % 32;
	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i])
			note(LAB_E_LOOKED, i, words[i], 0);
	note(LAB_E_SCAN, lab_looked_at, 0, 0);
}

/* Newidle passes of the present call of schedule(). */
static bool in_passes;
static unsigned int passes_ns, moved;

/* A newidle pass is over, if there was one. The next one looks at the same CPUs again. */
static void end_pass(void)
{
	if (!lab_looked_at)
		return;
	/* From 5.16 on the first includes the update of blocked averages. */
	if (!passes_ns && AT_LEAST(5, 16))
		passes_ns = prices.blocked_update;
	passes_ns += prices.pass + lab_looked_at * prices.pass_cpu + moved * prices.pass_task;
	note_looks();
	begin_looking();
	moved = 0;
}

static bool contains(const char *name, const char *part)
{
	int i;

	for (; *name; name++) {
		for (i = 0; part[i] && name[i] == part[i]; i++)
			;
		if (!part[i])
			return true;
	}
	return false;
}

/* The clock that the fair class measures its own work by. In schedule() looks are part of a newidle pass only between two
 * readings in newidle_balance(): others are at siblings on the way to idle, or at CPUs where a timer could go. */
unsigned long long lab_fair_clock(const char *function)
{
	if (contains(function, "select_idle"))
		return lab_now_ns + lab_looked_at * prices.scan_cpu;
	if (!contains(function, "newidle"))
		return lab_now_ns;
	if (in_passes)
		end_pass();
	else
		begin_looking();
	in_passes = true;
	return lab_now_ns + passes_ns;
}

/* ---- lines: who had a lock's line last, and which lines are of atomics ---- */
#define LINES 16384
static struct line { unsigned long at; short last, of, tg, atomic; int task; } lines[LINES];
static int natomics;

/* Which variables share a line differs between this library and a kernel, where static keys are code. So each has a line. */
static struct line *line_of(const void *p)
{
	unsigned long at = lab_is_variable(p) ? (unsigned long)p : (unsigned long)p >> 6;
	unsigned long i = (at * 0x9E3779B97F4A7C15ul) >> 50;

	while (lines[i].at && lines[i].at != at)
		i = (i + 1) & (LINES - 1);
	if (!lines[i].at) {
		static int used;

		if (++used > LINES * 3 / 4)
			return 0;
		lines[i] = (struct line) { at, -1, -1, -1, -1, -1 };
	}
	return &lines[i];
}

static bool word_in(const void *object, unsigned long size, const void *word)
{
	return (unsigned long)word - (unsigned long)object < size;
}

/* An atomic is read or written. The engine has prices of its own for run queues, tasks and address spaces. */
void lab_note_atomic(const void *word, int write)
{
	struct line *line;

	if (!lab_is_unpriced(word) || word_in(&init_mm, sizeof init_mm, word) || word_in(&init_task, sizeof init_task, word))
		return;
	line = line_of(word);
	if (!line || line->of >= 0)
		return;
	if (line->tg >= 0) {
		note(LAB_E_TG_LOAD_AVG, line->tg, write, 0);
		return;
	}
	if (line->atomic < 0) {
		if (!write || natomics == LAB_ATOMICS)
			return;
		line->atomic = natomics++;
	}
	if (line->last != lab_cpu)
		note(LAB_E_ATOMIC, line->atomic, write, 0);
	/* Once another CPU has read the line, the next write asks for it again. */
	line->last = write || line->last == lab_cpu ? lab_cpu : -1;
}

void lab_note_lock(const void *lock)
{
	struct line *line;

	if (!lab_noting)
		return;
	if (lab_is_unpriced(lock)) {
		lab_note_atomic(lock, 1);
		return;
	}
	if (!(line = line_of(lock)))
		return;
	if (line->of >= 0) {
		if (line->of != lab_cpu)
			note(LAB_E_RQ_LOCK, line->of, 0, 0);
	} else if (line->task >= 0) {
		note(LAB_E_TASK, line->task, 0, 0);
	} else if (line->last >= 0 && line->last != lab_cpu)
		note(LAB_E_LINE, line->last, 0, 0);
	line->last = lab_cpu;
}

void lab_note_task(int id, const void *lock)
{
	struct line *line = line_of(lock);

	if (line)
		line->task = id;
}

void lab_note_group(int group, const void *load_avg)
{
	struct line *line = line_of(load_avg);

	if (line)
		line->tg = group;
}

/* ---- the classes tell what they decide ---- */
static int forced = -1;
#if AT_LEAST(5, 11)
#define SELECT_ARGS struct task_struct *p, int cpu, int flags
#define SELECT_PASS p, cpu, flags
#else
#define SELECT_ARGS struct task_struct *p, int cpu, int sd_flag, int flags
#define SELECT_PASS p, cpu, sd_flag, flags
#endif
/* ---- CPUs on which a task is queued, but not yet as far as wakers see ---- */
static struct hidden { int cpu; unsigned int nr_running, ttwu_pending; } hidden[NR_CPUS];
static int nhidden;

void lab_hide_queued(int cpu, int hide)
{
	int i;

	for (i = 0; i < nhidden && hidden[i].cpu != cpu; i++)
		;
	if (hide && i == nhidden)
		hidden[nhidden++].cpu = cpu;
	else if (!hide && i < nhidden)
		hidden[i] = hidden[--nhidden];
}

static void hide_queued(void)
{
	int i;

	for (i = 0; i < nhidden; i++) {
		struct rq *rq = cpu_rq(hidden[i].cpu);

		hidden[i].nr_running = rq->nr_running;
		hidden[i].ttwu_pending = rq->ttwu_pending;
		if (rq->curr == rq->idle)
			rq->nr_running = rq->ttwu_pending = 0;
	}
}

static void show_queued(void)
{
	int i;

	for (i = 0; i < nhidden; i++) {
		struct rq *rq = cpu_rq(hidden[i].cpu);

		rq->nr_running = hidden[i].nr_running;
		rq->ttwu_pending = hidden[i].ttwu_pending;
	}
}

#ifdef LAB_OVERLOADED
#define overload_of(cpu) (cpu_rq(cpu)->rd->overloaded)
#else
#define overload_of(cpu) (cpu_rq(cpu)->rd->overload)
#endif
int lab_overload(int cpu) { return overload_of(cpu); }
void lab_set_overload(int cpu, int on) { overload_of(cpu) = on; }

static int (*fair_select)(SELECT_ARGS);
static void (*fair_migrate)(struct task_struct *p, int cpu);
static void (*dl_migrate)(struct task_struct *p, int cpu);
static void (*stop_enqueue)(struct rq *rq, struct task_struct *p, int flags);

static int select_fair(SELECT_ARGS)
{
	int to;

	if (forced >= 0)
		return forced;
	begin_looking();
	hide_queued();
	to = fair_select(SELECT_PASS);
	show_queued();
	note_looks();
	if (to < 0 || to >= lab_machine.cpus)
		lab_fatal((char *)fair_select + 1, "select_task_rq_fair() chose CPU %d of %d for task %d, which was on CPU %d", to,
			  lab_machine.cpus, id_of(p), cpu);
	if (!cpumask_test_cpu(to, p->cpus_ptr))
		lab_fatal((char *)fair_select + 1, "select_task_rq_fair() chose CPU %d for task %d (on CPU %d before, woken on CPU %d), which may not run there",
			  to, id_of(p), cpu, lab_cpu);
	note(LAB_E_SELECTED, id_of(p), to, 0);
	return to;
}

static void migrates(struct task_struct *p, int to)
{
	moved++;
	note(LAB_E_MIGRATED, id_of(p), task_cpu(p), to);
}
static void migrate_fair(struct task_struct *p, int to)
{
	migrates(p, to);
	fair_migrate(p, to);
}
static void migrate_dl(struct task_struct *p, int to)
{
	migrates(p, to);
	dl_migrate(p, to);
}
static void enqueue_stop(struct rq *rq, struct task_struct *p, int flags)
{
	note(LAB_E_STOPPER, rq->cpu, 0, 0);
	stop_enqueue(rq, p, flags);
}

#if AT_LEAST(5, 14)
#define lock_of(rq) (&(rq)->__lock)
#else
#define lock_of(rq) (&(rq)->lock)
#endif

/* From here on events are told. */
void lab_note(int on)
{
	struct sched_class *fair = (void *)&fair_sched_class, *rt = (void *)&rt_sched_class;
	struct sched_class *dl = (void *)&dl_sched_class, *stop = (void *)&stop_sched_class;
	int cpu;

	lab_noting = on;
	nevents = 0;
	if (!on || fair_select)
		return;
	/* The classes are const: without this the compiler may load an operation after it was replaced. */
	OPTIMIZER_HIDE_VAR(fair);
	OPTIMIZER_HIDE_VAR(rt);
	OPTIMIZER_HIDE_VAR(dl);
	OPTIMIZER_HIDE_VAR(stop);
	fair_select = fair->select_task_rq;
	fair->select_task_rq = select_fair;
	fair_migrate = fair->migrate_task_rq;
	fair->migrate_task_rq = migrate_fair;
	rt->migrate_task_rq = migrates;
	dl_migrate = dl->migrate_task_rq;
	dl->migrate_task_rq = dl_migrate ? migrate_dl : migrates;
	stop_enqueue = stop->enqueue_task;
	stop->enqueue_task = enqueue_stop;
	for (cpu = 0; cpu < lab_machine.cpus; cpu++) {
		struct line *line = line_of(lock_of(cpu_rq(cpu)));

		if (line)
			line->of = cpu;
	}
}

/* ---- a call that blocks has a stack of its own ---- */
struct context { unsigned long flags; void *link; struct { void *at; int flags; unsigned long size; } stack; char rest[8192]; };
extern int getcontext(struct context *c);
extern void makecontext(struct context *c, void (*fn)(void), int args, ...);
extern int swapcontext(struct context *from, const struct context *to);
#define STACK (256ul << 10)
struct call {
	struct context own, driver;
	char *stack;
	struct task_struct *caller, *task;
	const struct cpumask *mask;
	struct cpumask copy;
	int cpu, result, runs, done;
	const char *fault;
	const void *fault_at;
};
static struct call *calls[NR_CPUS], *inside;

/* What ends a run must not unwind through a stack of ours. */
void lab_leave_call(const char *text, const void *where)
{
	struct call *call = inside;

	if (!call)
		return;
	inside = 0;
	call->fault = text;
	call->fault_at = where;
	swapcontext(&call->own, &call->driver);
}

long schedule_timeout(long timeout)
{
	struct call *call = inside;

	if (!call)
		lab_fatal(__builtin_return_address(0), "the scheduler waits for something in a call that must not wait");
	inside = 0;
	swapcontext(&call->own, &call->driver);
	inside = call;
	return timeout;
}

static void in_call(void)
{
	struct call *call = inside;

	if (call->mask)
		call->result = set_cpus_allowed_ptr(call->task, call->mask);
	else
		sched_exec();
	call->done = 1;
	inside = 0;
	swapcontext(&call->own, &call->driver);
}

static void go(struct call *call)
{
	lab_cpu = call->cpu;
	lab_current = call->caller;
	preempt_count_add(1);
	inside = call;
	swapcontext(&call->driver, &call->own);
	if (call->fault)
		lab_fatal(call->fault_at, "%s", call->fault);
	lab_current = call->caller;
	preempt_count_sub(1);
	lab_irqs_off = 0;
}

/* 1: the call waits for the stopper of the task's CPU; else it is done, 0 or -errno. */
static int begin(int cpu, struct task_struct *task, const unsigned long *mask)
{
	static struct call *spare;
	struct call *call = spare;
	int slot = task_cpu(task);

	if (call)
		spare = 0;
	else {
		call = lab_alloc(sizeof *call);
		call->stack = lab_alloc_priced(STACK);
	}
	getcontext(&call->own);
	call->own.stack.at = call->stack;
	call->own.stack.size = STACK;
	call->own.link = 0;
	makecontext(&call->own, in_call, 0);
	lab_enter(cpu);
	call->cpu = cpu;
	call->caller = lab_current;
	call->task = task;
	call->mask = 0;
	if (mask) {
		cpumask_copy(&call->copy, (const struct cpumask *)mask);
		call->mask = &call->copy;
	}
	call->done = call->result = 0;
	go(call);
	if (call->done) {
		spare = call;
		return call->result;
	}
	/* It goes on when the stopper has done its work; until then nobody waits. */
	call->caller->__state = TASK_RUNNING;
	call->runs = 1;
	if (calls[slot])
		lab_fatal(0, "two calls wait for the stopper of CPU %d", slot);
	calls[slot] = call;
	return 1;
}

/* Changes affinity, also of a task that runs: 1 if its stopper must move it, or -errno. */
int lab_affinity_of(int cpu, int id, const unsigned long *mask)
{
	lab_rcu_flush();
	return begin(cpu, lab_task(id), mask);
}

/* The current task is about to execute another program: 1 if its stopper must move it. */
int lab_exec_of(int cpu)
{
	lab_rcu_flush();
	lab_enter(cpu);
	return begin(cpu, lab_current, 0);
}

/* The stopper that runs does its work, and who waited for it goes on; it does not sleep yet. */
int lab_stopper_works(int cpu)
{
	struct call *call = calls[cpu];

	lab_rcu_flush();
	lab_enter(cpu);
	if (lab_current != cpu_rq(cpu)->stop)
		return 0;
	while (lab_stopper_thread->thread_should_run(cpu))
		lab_stopper_thread->thread_fn(cpu);
	if (call) {
		calls[cpu] = 0;
		call->cpu = task_cpu(call->caller);
		go(call);
		if (!call->done)
			lab_fatal(0, "a call waits on though the stopper of CPU %d has done its work", cpu);
	}
	lab_enter(cpu);
	return 1;
}

/* ---- tasks ---- */
/* A child of `parent`, or of task 1 if that is negative, whatever runs on the CPU. It is born in a group. */
void lab_fork_of(int cpu, int id, int kthread, int parent, int group)
{
	struct rq *rq = cpu_rq(cpu);
	struct task_struct *curr = rq->curr, *of = parent < 0 ? rq->idle : lab_task(parent);
	struct task_group *tg = of->sched_task_group;
	struct css_set *set = rcu_dereference_raw(of->cgroups);

	lab_rcu_flush();
	rcu_assign_pointer(rq->curr, of);
	of->sched_task_group = lab_task_group(group);
	rcu_assign_pointer(of->cgroups, lab_group_set(group));
	lab_fork(cpu, id, kthread);
	of->sched_task_group = tg;
	rcu_assign_pointer(of->cgroups, set);
	rcu_assign_pointer(rq->curr, curr);
	lab_enter(cpu);
}

/* It sleeps before it was ever woken, and has done so for long. */
void lab_sleeps(int id)
{
	lab_task(id)->__state = TASK_INTERRUPTIBLE;
	lab_task(id)->se.vruntime = 0;
}

void lab_is_stopper(int cpu, int id) { lab_remember(id, cpu_rq(cpu)->stop); }

void lab_per_cpu(int id, int cpu) { kthread_set_per_cpu(lab_task(id), cpu); }

/* As kthread_bind() and kthread_create_on_cpu(). */
void lab_bind(int id, int cpu)
{
	struct task_struct *p = lab_task(id);
#ifdef LAB_SET_CPUS_ALLOWED_FORCE /* looked for by the build */
	set_cpus_allowed_force(p, cpumask_of(cpu));
#else
	unsigned long flags;

	raw_spin_lock_irqsave(&p->pi_lock, flags);
	do_set_cpus_allowed(p, cpumask_of(cpu));
	raw_spin_unlock_irqrestore(&p->pi_lock, flags);
#endif
	p->flags |= PF_NO_SETAFFINITY;
	kthread_set_per_cpu(p, cpu);
}

void lab_exiting(int id) { lab_task(id)->flags |= PF_EXITING; }

void lab_recent_cpu(int id, int cpu) { lab_task(id)->recent_used_cpu = cpu; }

int lab_wake_new_at(int cpu, int id, int at)
{
	int to;

	lab_rcu_flush();
	forced = at;
	to = lab_wake_new(cpu, id);
	forced = -1;
	return to;
}

/* A CPU that looks for work on its way to idle is not idle for others yet: available_idle_cpu() reads this word, and
 * idle_cpu(), which balancing calls, whether wake-ups are pending. */
unsigned char lab_heads_for_idle[NR_CPUS];

static void set_heads_for_idle(int cpu, int heads, int pending)
{
	if (lab_heads_for_idle[cpu] == heads)
		return;
	lab_heads_for_idle[cpu] = heads;
	cpu_rq(cpu)->ttwu_pending = heads || pending;
}

/* Whether there may be a core without tasks where a CPU searches; NULL if that is not known there. */
static int *idle_cores_of(int cpu)
{
	struct sched_domain *searched = lab_searched(cpu);

	return searched && searched->shared ? &searched->shared->has_idle_cores : NULL;
}

/* It has looked, and switched to its idle task. `pending`: its wake list has tasks. */
static void at_idle(int cpu, int pending)
{
	if (!lab_heads_for_idle[cpu])
		return;
	set_heads_for_idle(cpu, 0, pending);
	update_idle_core(cpu_rq(cpu));
}

/* ---- switches: a task that sleeps is on its CPU until the switch is over ---- */
static struct task_struct *leaving[NR_CPUS], *waking;
static unsigned long spins;
static int waking_pending;

/* `pending`: the wake list of the task's CPU has tasks. */
int lab_wake_of(int cpu, int id, int flags, int in_irq, int pending)
{
	int to;

	spins = 0;
	waking = lab_task(id);
	waking_pending = pending;
	to = lab_wake(cpu, id, flags, in_irq);
	waking = 0;
	return to;
}

/* The scheduler spins: a waker waits until the wakee's CPU has switched. No other spin has an end. */
void lab_relax(void)
{
	int cpu = waking ? task_cpu(waking) : 0;

	if (waking && leaving[cpu] == waking) {
		waking->on_cpu = 0;
		leaving[cpu] = 0;
		at_idle(cpu, waking_pending);
	}
	if (++spins > 1000000)
		lab_fatal(__builtin_return_address(0), "the scheduler spins on CPU %d for what nobody does", lab_cpu);
}

void lab_left(int id)
{
	struct task_struct *p = lab_task(id);
	int cpu = task_cpu(p);

	if (leaving[cpu] == p) {
		leaving[cpu] = 0;
		p->on_cpu = 0;
	}
}

void lab_at_idle(int cpu, int pending)
{
	lab_enter(cpu);
	at_idle(cpu, pending);
}

enum { PREEMPTED, YIELDED, SLEEPS, SLEEPS_DEEP, EXITS };

/* 1: the task that left is still queued, as its dequeue is delayed. `pending`: the CPU's wake list has tasks. */
int lab_schedule(int cpu, int how, int pending)
{
	struct task_struct *p;
	int delayed = 0, *idle_cores = idle_cores_of(cpu), had_idle_cores = idle_cores && *idle_cores;

	lab_rcu_flush();
	spins = 0;
	lab_enter(cpu);
	in_passes = false;
	passes_ns = moved = 0;
	p = lab_current;
	/* Work came while it looked for some: it was never idle, as at the end of newidle_balance(). */
	if (lab_heads_for_idle[cpu] && cpu_rq(cpu)->nr_running)
		cpu_rq(cpu)->idle_stamp = 0;
	if (is_idle_task(p)) {
		lab_tick_stopped[cpu] = lab_tick_stopped[cpu] && !cpu_rq(cpu)->nr_running;
		schedule_idle();
	} else if (how == PREEMPTED) {
		lab_irqs_off = 1;
		preempt_schedule_irq();
	} else {
		if (how == EXITS)
			lab_leave_process(p);
		if (how != YIELDED)
			p->__state = how == SLEEPS ? TASK_INTERRUPTIBLE : how == EXITS ? TASK_DEAD : TASK_UNINTERRUPTIBLE;
		schedule();
	}
	lab_settle();
	lab_idles();
	if (!is_idle_task(lab_current))
		set_heads_for_idle(cpu, 0, pending);
	else if (!is_idle_task(p)) {
		set_heads_for_idle(cpu, 1, pending);
		/* Its core is known to be idle from the switch on. */
		if (idle_cores)
			*idle_cores = had_idle_cores;
	}
	if (p != lab_current && (how == SLEEPS || how == SLEEPS_DEEP)) {
#if AT_LEAST(6, 12)
		delayed = p->se.sched_delayed;
#endif
		if (!p->on_rq && p != cpu_rq(cpu)->stop && p->__state != TASK_RUNNING) {
			if (leaving[cpu])
				leaving[cpu]->on_cpu = 0;
			leaving[cpu] = p;
			p->on_cpu = 1;
		}
	}
	return delayed;
}

/* The balance softirq. */
void lab_balance(int cpu)
{
	lab_enter(cpu);
	begin_looking();
	lab_last_look[cpu] = lab_call;
	lab_softirq(cpu);
	note_looks();
}

/* The current task offers its CPU to others, but does not yet call schedule(). */
void lab_yields(int cpu)
{
	struct rq *rq = cpu_rq(cpu);
	unsigned long flags;

	lab_enter(cpu);
	raw_spin_lock_irqsave(lock_of(rq), flags);
	lab_current->sched_class->yield_task(rq);
	raw_spin_unlock_irqrestore(lock_of(rq), flags);
}

void lab_freq_scale(int cpu, u64 scale) { lab_freq_scales[cpu] = scale; }

/* How deep an idle CPU sleeps: how long it takes to leave that state, ns; negative: it is awake. */
void lab_idle_state(int cpu, long long exit_ns)
{
#ifdef CONFIG_CPU_IDLE
	static struct cpuidle_state states[NR_CPUS];

	states[cpu].exit_latency = exit_ns / 1000;
	cpu_rq(cpu)->idle_state = exit_ns < 0 ? NULL : &states[cpu];
#endif
}

/* ---- what the engine reads of a task: cpu, queued, on its CPU, state, run time, virtual time, delayed, waking, new ---- */
void lab_read(int id, u64 *o)
{
	struct task_struct *p = lab_task(id);

	o[0] = task_cpu(p);
	o[1] = p->on_rq == TASK_ON_RQ_QUEUED;
	o[2] = p->on_cpu;
	o[3] = READ_ONCE(p->__state);
	o[4] = p->se.sum_exec_runtime;
	o[5] = p->se.vruntime;
	o[6] = 0;
#if AT_LEAST(6, 12)
	o[6] = p->se.sched_delayed;
#endif
	o[7] = READ_ONCE(p->__state) == TASK_WAKING && !p->on_rq;
	o[8] = READ_ONCE(p->__state) == TASK_NEW;
}

/* ---- what a machine brings that has been up for a while ---- */
void lab_past_cpu(int cpu, u64 idle_stamp, u64 next_balance, u64 idle_scan, u64 balance_scan, int idle_cores)
{
	struct sched_domain *searched = lab_searched(cpu);
	int *known = idle_cores_of(cpu);
	struct rq *rq = cpu_rq(cpu);
	struct sched_domain *llc = rcu_dereference_raw(per_cpu(sd_llc, cpu));
	unsigned long flags;

	lab_enter(cpu);
	raw_spin_lock_irqsave(lock_of(rq), flags);
	update_rq_clock(rq);
	raw_spin_unlock_irqrestore(lock_of(rq), flags);
	rq->idle_stamp = idle_stamp;
	rq->next_balance = next_balance;
#if AT_LEAST(5, 18)
	if (searched && searched->shared)
		searched->shared->nr_idle_scan = balance_scan;
	if (llc && llc->shared)
		llc->shared->nr_idle_scan = idle_scan;
#endif
	if (known)
		*known = idle_cores;
}

/* 0: there is no such domain. */
int lab_past_domain(int cpu, int level, u64 last_balance, u64 interval, u64 newidle_cost, u64 decayed)
{
	struct sched_domain *sd;

	for_each_domain(cpu, sd) {
		if (level--)
			continue;
		sd->last_balance = last_balance;
		sd->balance_interval = interval;
		sd->max_newidle_lb_cost = newidle_cost;
#if AT_LEAST(5, 17)
		sd->last_decay_max_lb_cost = decayed;
#else
		sd->next_decay_max_lb_cost = decayed;
#endif
		return 1;
	}
	return 0;
}

/* ---- groups ---- */
extern int sched_group_set_idle(struct task_group *tg, long idle) __attribute__((weak)); /* from 5.15 */

int lab_group_idle(int group, int idle)
{
	return sched_group_set_idle ? sched_group_set_idle(lab_task_group(group), idle) : -1;
}

/* What the kernel wants done before a task returns to user mode: from 7.0 on a group out of quota lets its tasks go there. */
int task_work_add(struct task_struct *p, struct callback_head *work, enum task_work_notify_mode mode)
{
	work->next = lab_own(p)->work;
	lab_own(p)->work = work;
	return 0;
}

/* 1: the task must make way. */
int lab_exit_to_user(int cpu)
{
	struct task_struct *p;
	struct callback_head *work;

	lab_enter(cpu);
	p = lab_current;
	if (!lab_own(p)->work)
		return 0;
	lab_rcu_flush();
	work = lab_own(p)->work;
	lab_own(p)->work = 0;
	preempt_count_add(1);
	while (work) {
		struct callback_head *next = work->next;

		work->func(work);
		work = next;
	}
	preempt_count_sub(1);
	return test_tsk_need_resched(p);
}
