/* SPDX-License-Identifier: GPL-2.0 */
/* Where the sections go of which the kernel knows the ends: the tree says itself what they contain. */
#include <asm/page.h>
#include <asm/cache.h>
#include <asm-generic/vmlinux.lds.h>
#ifndef L1_CACHE_BYTES
#define L1_CACHE_BYTES 64
#endif
SECTIONS {
	.lab_sched : { SCHED_DATA }
	. = ALIGN(4096);
	.lab_percpu : { PERCPU_INPUT(64) }
	.lab_initcall : { __lab_early_start = .; KEEP(*(.initcallearly.init)) __lab_early_end = .; }
} INSERT AFTER .data;
SECTIONS {
	.lab_text : { SCHED_TEXT  __cpuidle_text_start = .; *(.cpuidle.text) __cpuidle_text_end = .; }
} INSERT AFTER .text;
/* The variables lie between these. */
SECTIONS { .lab_vars_start : { __lab_vars_start = .; } } INSERT BEFORE .data;
SECTIONS { .lab_vars_end : { __lab_vars_end = .; } } INSERT AFTER .bss;
