#ifndef _LAB_ASM_PARAVIRT_H
#define _LAB_ASM_PARAVIRT_H
extern struct static_key paravirt_steal_enabled, paravirt_steal_rq_enabled;
u64 paravirt_steal_clock(int cpu);
#endif
