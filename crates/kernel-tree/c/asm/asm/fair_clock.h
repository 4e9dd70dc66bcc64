#ifndef _LAB_ASM_FAIR_CLOCK_H
#define _LAB_ASM_FAIR_CLOCK_H
/* Included before fair.c, which times its searches and its newidle passes: the function that reads the clock decides
 * what has taken time. */
#include <linux/sched/clock.h>
unsigned long long lab_fair_clock(const char *function);
#define sched_clock_cpu(cpu) lab_fair_clock(__func__)
#define cpu_clock(cpu) lab_fair_clock(__func__)
#endif
