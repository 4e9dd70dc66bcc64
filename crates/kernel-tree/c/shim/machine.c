// SPDX-License-Identifier: GPL-2.0
// The machine under the scheduler: a clock, CPUs, interrupts as bits, locks, randomness, and what ends a run.
#include <linux/clockchips.h>
#include <linux/cpu.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kernel.h>
#include <linux/kernel_stat.h>
#include <linux/kthread.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#include <linux/random.h>
#include <linux/sched/clock.h>
#include <linux/sched/mm.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include "shim.h"

extern void abort(void) __attribute__((noreturn));

/* ---- time and CPUs ---- */
struct lab_machine lab_machine;
u64 lab_now_ns, lab_timers[NR_CPUS], lab_nr_switches;
int lab_cpu, lab_node_of[NR_CPUS], lab_package_of[NR_CPUS], lab_core_of[NR_CPUS], lab_distance[64][64];
struct task_struct *lab_current = &init_task;
unsigned long lab_irqs_off, lab_capacity[NR_CPUS];
struct cpumask lab_masks[4][NR_CPUS], lab_node_masks[64];
unsigned char lab_ipis[NR_CPUS];
unsigned int lab_softirqs[NR_CPUS];
bool lab_tick_stopped[NR_CPUS];

unsigned long long sched_clock(void) { return lab_now_ns; }
u64 jiffies_64;
asm(".globl jiffies\njiffies = jiffies_64");
ktime_t ktime_get(void) { return lab_now_ns; }
ktime_t ktime_get_with_offset(enum tk_offsets offset) { return lab_now_ns; }
ktime_t ktime_get_update_offsets_now(unsigned int *seq, ktime_t *real, ktime_t *boot, ktime_t *tai)
{
	*real = *boot = *tai = 0;
	return lab_now_ns;
}
void lab_now(u64 ns)
{
	lab_now_ns = ns;
	jiffies_64 = ns / TICK_NSEC;
}

/* Time that a hypervisor takes from a CPU. Newer kernels have the keys themselves. */
struct static_key paravirt_steal_enabled __attribute__((weak)), paravirt_steal_rq_enabled __attribute__((weak));
static u64 stolen[NR_CPUS];

u64 paravirt_steal_clock(int cpu) { return stolen[cpu]; }
void lab_steal(int cpu, u64 ns)
{
	stolen[cpu] += ns;
	if (!static_key_enabled(&paravirt_steal_rq_enabled))
		static_key_slow_inc(&paravirt_steal_rq_enabled);
}

unsigned long lab_cpu_capacity(int cpu) { return lab_capacity[cpu]; }
const struct cpumask *lab_mask(int level, int cpu) { return &lab_masks[level][cpu]; }
const struct cpumask *lab_node_mask(int node) { return &lab_node_masks[node]; }
const struct cpumask *cpu_coregroup_mask(int cpu) { return &lab_masks[2][cpu]; }
const struct cpumask *cpu_clustergroup_mask(int cpu) { return &lab_masks[1][cpu]; }

struct cpumask __cpu_possible_mask, __cpu_online_mask, __cpu_present_mask, __cpu_active_mask, __cpu_dying_mask;
atomic_t __num_online_cpus;
unsigned int nr_node_ids = 1;
nodemask_t node_states[NR_NODE_STATES];
enum system_states system_state;
#define BIT1(x) [(x) + 1][0] = 1UL << (x)
#define BIT4(x) BIT1(x), BIT1((x) + 1), BIT1((x) + 2), BIT1((x) + 3)
#define BIT16(x) BIT4(x), BIT4((x) + 4), BIT4((x) + 8), BIT4((x) + 12)
const unsigned long cpu_bit_bitmap[BITS_PER_LONG + 1][BITS_TO_LONGS(NR_CPUS)] = {
	BIT16(0), BIT16(16), BIT16(32), BIT16(48)
};

/* There is one host stack: __schedule() goes on as the next task and returns to the driver. */
void lab_switch(struct task_struct *prev, struct task_struct *next)
{
	lab_current = next;
	next->thread_info.preempt_count = 2 * PREEMPT_DISABLE_OFFSET;
	lab_nr_switches++;
}

/* ---- interrupts are bits, which the driver delivers ---- */
void arch_smp_send_reschedule(int cpu)
{
	lab_ipis[cpu] = 1;
	lab_note_ipi(cpu, 0);
}
void arch_send_call_function_single_ipi(int cpu)
{
	lab_ipis[cpu] = 1;
	lab_note_ipi(cpu, 1);
}
void arch_send_call_function_ipi_mask(const struct cpumask *mask)
{
	int cpu;

	for_each_cpu(cpu, mask)
		arch_send_call_function_single_ipi(cpu);
}
void raise_softirq_irqoff(unsigned int nr) { lab_softirqs[lab_cpu] |= 1u << nr; }
void __raise_softirq_irqoff(unsigned int nr) { lab_softirqs[lab_cpu] |= 1u << nr; }
void raise_softirq(unsigned int nr) { lab_softirqs[lab_cpu] |= 1u << nr; }
int tick_program_event(ktime_t expires, int force)
{
	lab_timers[lab_cpu] = expires;
	return 0;
}
int tick_check_oneshot_change(int allow_nohz) { return 1; }
int tick_init_highres(void) { return 0; }
void tick_setup_sched_timer(bool hrtimer) { }
bool tick_nohz_tick_stopped(void) { return lab_tick_stopped[lab_cpu]; }
bool tick_nohz_tick_stopped_cpu(int cpu) { return lab_tick_stopped[cpu]; }
DEFINE_PER_CPU(struct pt_regs *, __irq_regs);

/* ---- locks: one host thread, so a lock that is taken already is never given back ---- */
void lab_deadlock(void *lock)
{
	lab_fatal(__builtin_return_address(0), "a lock is taken that is held already");
}
void _raw_spin_lock(raw_spinlock_t *lock)
{
	preempt_disable();
	if (lock->raw_lock.slock)
		lab_fatal(__builtin_return_address(0), "a lock is taken that is held already");
	lock->raw_lock.slock = 1;
	lab_note_lock(lock);
}
int _raw_spin_trylock(raw_spinlock_t *lock)
{
	preempt_disable();
	if (arch_spin_trylock(&lock->raw_lock)) {
		lab_note_lock(lock);
		return 1;
	}
	preempt_enable_no_resched();
	return 0;
}
void _raw_spin_unlock(raw_spinlock_t *lock)
{
	arch_spin_unlock(&lock->raw_lock);
	preempt_enable_no_resched();
}
void _raw_spin_lock_irq(raw_spinlock_t *lock)
{
	lab_irqs_off = 1;
	_raw_spin_lock(lock);
}
void _raw_spin_unlock_irq(raw_spinlock_t *lock)
{
	lab_irqs_off = 0;
	_raw_spin_unlock(lock);
}
unsigned long _raw_spin_lock_irqsave(raw_spinlock_t *lock)
{
	unsigned long flags = lab_irqs_off;

	lab_irqs_off = 1;
	_raw_spin_lock(lock);
	return flags;
}
void _raw_spin_unlock_irqrestore(raw_spinlock_t *lock, unsigned long flags)
{
	_raw_spin_unlock(lock);
	lab_irqs_off = flags;
}
void _raw_read_lock(rwlock_t *lock) { }
void _raw_read_unlock(rwlock_t *lock) { }
void mutex_lock(struct mutex *lock) { }
void mutex_unlock(struct mutex *lock) { }
void cpus_read_lock(void) { }
void cpus_read_unlock(void) { }

/* ---- words, and what ends a run ---- */
static lab_fatal_fn on_fatal;
static char sentence[600];
static int warnings;
static char first_warning[200];

void lab_on_fatal(lab_fatal_fn fn) { on_fatal = fn; }

static void end(const void *where) __attribute__((noreturn));
static void end(const void *where)
{
	lab_leave_call(sentence, where);
	if (on_fatal)
		on_fatal(sentence, where);
	abort();
}

void lab_fatal(const void *where, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof sentence, format, args);
	va_end(args);
	end(where);
}

/* A trap of the processor in our code. */
void lab_trap(const char *text, const void *where) { lab_fatal(where, "%s", text); }

void lab_bug(const char *file, int line, const char *function)
{
	lab_fatal(0, "%s:%d: BUG in %s()", file, line, function);
}

void lab_missing(const char *name, const void *where)
{
	lab_fatal(where, "the library has no %s()", name);
}

void panic(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof sentence, format, args);
	va_end(args);
	end(__builtin_return_address(0));
}

void warn_slowpath_fmt(const char *file, int line, unsigned int taint, const char *format, ...)
{
	if (!warnings++)
		snprintf(first_warning, sizeof first_warning, "%s:%d", file, line);
}

int lab_warnings(const char **text)
{
	*text = first_warning;
	return warnings;
}

int _printk(const char *format, ...) { return 0; }
int _printk_deferred(const char *format, ...) { return 0; }

/* ---- randomness: the driver's ---- */
static u64 random = 88172645463325252ull, cpu_random[NR_CPUS];

void lab_seed(u64 seed) { random = seed | 1; }
void lab_cpu_seed(int cpu, u64 seed) { cpu_random[cpu] = seed; }
u64 lab_cpu_random(int cpu) { return cpu_random[cpu]; }
static u64 next_random(void)
{
	random ^= random << 13;
	random ^= random >> 7;
	return random ^= random << 17;
}
u32 get_random_u32(void) { return next_random(); }
u32 __get_random_u32_below(u32 ceiling) { return next_random() % ceiling; }
/* xorshift64*, as the Rust side has it. */
u32 prandom_u32_state(struct rnd_state *state)
{
	u64 *r = &cpu_random[lab_cpu];

	*r ^= *r >> 12;
	*r ^= *r << 25;
	*r ^= *r >> 27;
	return (*r * 0x2545F4914F6CDD1Dull) >> 32;
}
void prandom_seed_full_state(struct rnd_state __percpu *state) { }
bool __do_once_start(bool *done, unsigned long *flags) { return !*done; }
