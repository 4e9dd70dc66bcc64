// SPDX-License-Identifier: GPL-2.0
// Memory: one arena, so that a whole scheduler is freed at once; per-CPU memory; what RCU frees.
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include "shim.h"

extern void *mmap(void *, unsigned long, int, int, int, long);
extern int munmap(void *, unsigned long);

#define ARENA (4ul << 30) /* of address space; only what is touched is memory */
static char *arena;
static unsigned long arena_used, priced_used; /* from its start, and from its end */

/* Blocks are powers of two; a free one holds the next. The size stands before the block. */
struct block { struct block *next; };
static struct block *bins[48], *priced_bins[48];

static int bin_of(unsigned long n)
{
	int bin = 6;

	while ((1ul << bin) < n)
		bin++;
	return bin;
}

static void *alloc(unsigned long n, bool priced)
{
	struct block **free;
	int bin = bin_of(n);
	char *p;

	if (!arena) {
		arena = mmap(0, ARENA, 3 /* read, write */, 0x4022 /* private, anonymous, no reserve */, -1, 0);
		if (arena == (char *)-1)
			lab_fatal(0, "there is no address space for the kernel's memory");
		arena_used = 64;
	}
	free = priced ? &priced_bins[bin] : &bins[bin];
	if (*free) {
		p = (char *)*free;
		*free = (*free)->next;
		memset(p, 0, 1ul << bin);
		return p;
	}
	*(priced ? &priced_used : &arena_used) += 64 + (1ul << bin);
	if (arena_used + priced_used > ARENA)
		lab_fatal(0, "the kernel asked for more than 4 GiB of memory");
	p = priced ? arena + ARENA - priced_used + 64 : arena + arena_used - (1ul << bin);
	*(int *)(p - 8) = bin;
	return p;
}

void *lab_alloc(unsigned long n)
{
	return alloc(n, false);
}

/* For what the engine has prices of its own for: tasks, address spaces, memory of a CPU; and for stacks, which no other CPU touches. */
void *lab_alloc_priced(unsigned long n)
{
	return alloc(n, true);
}

static bool is_priced(const void *p)
{
	return (char *)p >= arena + ARENA - priced_used && (char *)p < arena + ARENA;
}

bool lab_is_variable(const void *p)
{
	extern char __lab_vars_start[], __lab_vars_end[];

	return (char *)p >= __lab_vars_start && (char *)p < __lab_vars_end;
}

/* Variables of the kernel, and memory that it has allocated. */
bool lab_is_unpriced(const void *p)
{
	return ((char *)p >= arena && (char *)p < arena + arena_used) || lab_is_variable(p);
}

void lab_free(const void *q)
{
	struct block *p = (void *)q, **free;
	int bin;

	if ((unsigned long)q <= 16) /* NULL and ZERO_SIZE_PTR */
		return;
	bin = *(int *)((char *)q - 8);
	free = is_priced(q) ? &priced_bins[bin] : &bins[bin];
	p->next = *free;
	*free = p;
}

void lab_close(void)
{
	if (arena)
		munmap(arena, ARENA);
	arena = 0;
}

/* ---- per-CPU memory: the static part and a heap behind it, at the same offset on every CPU ---- */
unsigned long __per_cpu_offset[NR_CPUS];
extern char __per_cpu_start[], __per_cpu_end[];
#define HEAP (3ul << 20) /* of address space */
#define UNIT 16
static unsigned short units_at[HEAP / UNIT]; /* size of the piece that begins there */
static unsigned long heap_used, first_free[64];
/* A free piece of fewer than 64 units holds the offset of the next. */
#define next_free(offset) (*(unsigned long *)(__per_cpu_start + __per_cpu_offset[0] + (offset)))

static unsigned long static_size(void)
{
	return (__per_cpu_end - __per_cpu_start + 63) & ~63ul;
}

void lab_percpu_boot(int cpus)
{
	int cpu;

	for (cpu = 0; cpu < cpus; cpu++) {
		char *area = lab_alloc_priced(static_size() + HEAP + 4096);

		area = (char *)(((unsigned long)area + 4095) & ~4095ul);
		memcpy(area, __per_cpu_start, __per_cpu_end - __per_cpu_start);
		__per_cpu_offset[cpu] = area - __per_cpu_start;
	}
	for (; cpu < NR_CPUS; cpu++)
		__per_cpu_offset[cpu] = __per_cpu_offset[0];
}

void __percpu *lab_percpu_alloc(size_t size, size_t align)
{
	unsigned long units = (size + UNIT - 1) / UNIT, offset = 0;
	int cpu;

	if (units < ARRAY_SIZE(first_free) && align <= UNIT)
		offset = first_free[units];
	if (offset) {
		first_free[units] = next_free(offset);
	} else {
		align = max_t(size_t, align, UNIT);
		heap_used = (heap_used + align - 1) & -align;
		offset = static_size() + heap_used;
		heap_used += units * UNIT;
		if (heap_used > HEAP)
			lab_fatal(0, "the kernel asked for more than 3 MiB of memory per CPU");
		units_at[(offset - static_size()) / UNIT] = units;
	}
	for_each_possible_cpu(cpu)
		memset(__per_cpu_start + __per_cpu_offset[cpu] + offset, 0, units * UNIT);
	return (void __percpu *)(__per_cpu_start + offset);
}

void free_percpu(void __percpu *p)
{
	unsigned long offset = (char *)p - __per_cpu_start, units;

	if (!p)
		return;
	units = units_at[(offset - static_size()) / UNIT];
	if (units < ARRAY_SIZE(first_free)) {
		next_free(offset) = first_free[units];
		first_free[units] = offset;
	}
}

/* ---- RCU: nothing runs beside us; what is to be freed waits until the driver's next call ---- */
static struct rcu_head *rcu_list;
void *lab_kvfree_list[1024];
int lab_kvfree_count;

void __rcu_read_lock(void) { }
void __rcu_read_unlock(void) { }
void rcu_note_context_switch(bool preempt) { }
void synchronize_rcu(void) { }

void call_rcu(struct rcu_head *head, rcu_callback_t func)
{
	head->func = func;
	head->next = rcu_list;
	rcu_list = head;
}

void lab_rcu_flush(void)
{
	while (rcu_list) {
		struct rcu_head *head = rcu_list;

		rcu_list = head->next;
		head->func(head);
	}
	while (lab_kvfree_count)
		lab_free(lab_kvfree_list[--lab_kvfree_count]);
}
