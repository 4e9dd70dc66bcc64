// SPDX-License-Identifier: GPL-2.0
// The state of a task, a CPU, a domain and a group's part of a CPU, as words in the order of the enumerations.
#include <linux/hrtimer.h>
#if __has_include(<linux/hrtimer_bases.h>)
#include <linux/hrtimer_bases.h>
#endif
#include <linux/sched/topology.h>
#include "sched.h"
#include "shim.h"

enum { T_CPU, T_ON_RQ, T_DELAYED, T_ON_CPU, T_VRUNTIME, T_DEADLINE, T_SLICE, T_SUM_EXEC, T_VLAG, T_LOAD_AVG, T_UTIL_AVG,
       T_RUNNABLE_AVG, T_LAST_UPDATE, T_RECENT_USED, T_WAKEE_FLIPS, T_WAKE_CPU, T_SE_ON_RQ, T_PRIO, T_UTIL_EST,
       T_DL_RUNTIME, T_DL_DEADLINE, T_DL_THROTTLED, T_LOAD_SUM, T_UTIL_SUM, T_WEIGHT,
       T_DL_TIMER_PLACE, T_INACTIVE_TIMER_PLACE, T_VPROT, T_PREFERRED_LLC, T_PREF_LLC_QUEUED,
       T_UTIL_EST_EWMA };

/*
 * Where a timer is set, or was last: in the upper half its CPU, in the lower half how many timers of that CPU expire before it.
 * Those of one instant expire in the order in which they were set.
 */
static u64 timer_place(struct hrtimer *timer)
{
	struct rb_node *node = (struct rb_node *)&timer->node; /* its first member in every release */
	u64 place;

	if (!timer->base)
		return -1;
	place = (u64)timer->base->cpu_base->cpu << 32;
	if (!hrtimer_is_queued(timer))
		return place | 0xffffffff;
	while ((node = rb_prev(node)))
		place++;
	return place;
}

void lab_state_task(int id, u64 *o)
{
	struct task_struct *p = lab_task(id);
	struct sched_entity *se = &p->se;

	memset(o, 0, LAB_TASK_WORDS * sizeof *o);
	o[T_CPU] = task_cpu(p);
	o[T_ON_RQ] = p->on_rq;
	o[T_ON_CPU] = p->on_cpu;
	o[T_VRUNTIME] = se->vruntime;
	o[T_SUM_EXEC] = se->sum_exec_runtime;
	o[T_LOAD_AVG] = se->avg.load_avg;
	o[T_UTIL_AVG] = se->avg.util_avg;
	o[T_RUNNABLE_AVG] = se->avg.runnable_avg;
	o[T_LAST_UPDATE] = se->avg.last_update_time;
	o[T_RECENT_USED] = p->recent_used_cpu;
	o[T_WAKEE_FLIPS] = p->wakee_flips;
	o[T_WAKE_CPU] = p->wake_cpu;
	o[T_SE_ON_RQ] = se->on_rq;
	o[T_PRIO] = p->prio;
	o[T_DL_RUNTIME] = p->dl.runtime;
	o[T_DL_DEADLINE] = p->dl.deadline;
	o[T_DL_THROTTLED] = p->dl.dl_throttled;
	o[T_DL_TIMER_PLACE] = timer_place(&p->dl.dl_timer);
	o[T_INACTIVE_TIMER_PLACE] = timer_place(&p->dl.inactive_timer);
	o[T_LOAD_SUM] = se->avg.load_sum;
	o[T_UTIL_SUM] = se->avg.util_sum;
	o[T_WEIGHT] = se->load.weight;
#if AT_LEAST(6, 8)
	o[T_UTIL_EST] = se->avg.util_est & ~UTIL_AVG_UNCHANGED;
#else
	o[T_UTIL_EST] = se->avg.util_est.enqueued & ~UTIL_AVG_UNCHANGED;
	o[T_UTIL_EST_EWMA] = se->avg.util_est.ewma;
#endif
#if AT_LEAST(6, 12)
	o[T_DELAYED] = se->sched_delayed;
#endif
#if AT_LEAST(6, 6)
	o[T_DEADLINE] = se->deadline;
	o[T_SLICE] = se->slice;
	o[T_VLAG] = se->vlag;
#endif
#if AT_LEAST(7, 0)
	o[T_VPROT] = se->vprot;
#endif
#ifdef CONFIG_SCHED_CACHE
	o[T_PREFERRED_LLC] = p->preferred_llc + 1;
	o[T_PREF_LLC_QUEUED] = p->pref_llc_queued;
#endif
}

/* The domain whose CPUs share what idle searches know: from 7.2 on one with all capacities, else the LLC. */
struct sched_domain *lab_searched(int cpu)
{
	struct sched_domain *asym = rcu_dereference_raw(per_cpu(sd_asym_cpucapacity, cpu));

	return asym && asym->shared ? asym : rcu_dereference_raw(per_cpu(sd_llc, cpu));
}

/* The sum of weighted virtual times that tells who may run; 0 under CFS. */
static u64 vruntime_sum(struct cfs_rq *q)
{
#if AT_LEAST(7, 0)
	return q->sum_w_vruntime;
#elif AT_LEAST(6, 6)
	return q->avg_vruntime;
#else
	return 0;
#endif
}

static unsigned int h_nr(struct cfs_rq *q)
{
#if AT_LEAST(6, 12)
	return q->h_nr_queued;
#else
	return q->h_nr_running;
#endif
}

enum { C_NR_RUNNING, C_CLOCK, C_CLOCK_TASK, C_CLOCK_PELT, C_AVG_IDLE, C_IDLE_STAMP, C_NEXT_BALANCE, C_LOAD_AVG, C_UTIL_AVG,
       C_RUNNABLE_AVG, C_CAPACITY, C_IDLE_COST, C_WEIGHT, C_VRUNTIME, C_H_LOAD, C_H_LOAD_AT, C_IDLE_SCAN, C_IDLE_CORES,
       C_OVERLOADED, C_RT_AVG, C_DL_AVG, C_BALANCE_SCAN, C_AGE, C_HRTICK, C_IRQ_AVG, C_LOAD_SUM,
       C_UTIL_SUM, C_REMOVED, C_REMOVED_LOAD, C_MISFIT, C_H_NR, C_SUM, C_NEXT,
       C_NR_PREF_LLC_RUNNING, C_LLC_COUNTS, C_EPOCH, C_EPOCH_NEXT, C_EPOCH_RUNTIME, C_UTIL_EST,
       C_SERVER_STATE, C_SERVER_RUNTIME, C_SERVER_DEADLINE, C_SERVER_TIMER, C_RANDOM, C_HRTICK_PLACE,
       C_SERVER_PLACE, C_ON_LIST };

/* Of the timers of a fair server the first counts. */
static inline void server_timer(struct hrtimer *timer, u64 *o)
{
	u64 expires = hrtimer_get_expires(timer);

	if (hrtimer_is_queued(timer) && (!o[C_SERVER_TIMER] || expires < o[C_SERVER_TIMER])) {
		o[C_SERVER_TIMER] = expires;
		o[C_SERVER_PLACE] = timer_place(timer);
	}
}

void lab_state_cpu(int cpu, u64 *o)
{
	struct rq *rq = cpu_rq(cpu);
	struct sched_domain *llc = rcu_dereference_raw(per_cpu(sd_llc, cpu)), *searched = lab_searched(cpu);

	memset(o, 0, LAB_CPU_WORDS * sizeof *o);
	o[C_NR_RUNNING] = rq->nr_running;
	o[C_RANDOM] = lab_cpu_random(cpu);
	o[C_CLOCK] = rq->clock;
	o[C_CLOCK_TASK] = rq->clock_task;
	o[C_CLOCK_PELT] = rq->clock_pelt;
	o[C_AVG_IDLE] = rq->avg_idle;
	o[C_IDLE_STAMP] = rq->idle_stamp;
	o[C_NEXT_BALANCE] = rq->next_balance;
	o[C_LOAD_AVG] = rq->cfs.avg.load_avg;
	o[C_UTIL_AVG] = rq->cfs.avg.util_avg;
	o[C_RUNNABLE_AVG] = rq->cfs.avg.runnable_avg;
	o[C_CAPACITY] = rq->cpu_capacity;
	o[C_IDLE_COST] = rq->max_idle_balance_cost;
	o[C_WEIGHT] = rq->cfs.load.weight;
#ifdef LAB_ZERO_VRUNTIME /* looked for by the build: stable kernels have taken it over */
	o[C_VRUNTIME] = rq->cfs.zero_vruntime;
#else
	o[C_VRUNTIME] = rq->cfs.min_vruntime;
#endif
#if AT_LEAST(6, 10)
	o[C_OVERLOADED] = rq->rd->overloaded;
#else
	o[C_OVERLOADED] = rq->rd->overload;
#endif
	o[C_RT_AVG] = rq->avg_rt.util_avg;
	o[C_DL_AVG] = rq->avg_dl.util_avg;
	o[C_H_LOAD] = rq->cfs.h_load;
	o[C_H_LOAD_AT] = rq->cfs.last_h_load_update;
	if (rq->cfs.avg.last_update_time)
		o[C_AGE] = rq->clock_pelt - rq->lost_idle_time - rq->cfs.avg.last_update_time;
#if AT_LEAST(5, 18)
	if (llc && llc->shared)
		o[C_IDLE_SCAN] = llc->shared->nr_idle_scan;
	if (searched && searched->shared)
		o[C_BALANCE_SCAN] = searched->shared->nr_idle_scan;
#endif
#if AT_LEAST(6, 8)
	o[C_UTIL_EST] = rq->cfs.avg.util_est;
#else
	o[C_UTIL_EST] = rq->cfs.avg.util_est.enqueued;
#endif
	o[C_IRQ_AVG] = rq->avg_irq.util_avg;
	o[C_LOAD_SUM] = rq->cfs.avg.load_sum;
	o[C_UTIL_SUM] = rq->cfs.avg.util_sum;
	o[C_REMOVED] = rq->cfs.removed.nr;
	o[C_REMOVED_LOAD] = rq->cfs.removed.load_avg;
	o[C_MISFIT] = rq->misfit_task_load;
	o[C_H_NR] = h_nr(&rq->cfs);
	o[C_SUM] = vruntime_sum(&rq->cfs);
	o[C_ON_LIST] = rq->cfs.on_list;
	o[C_NEXT] = rq->cfs.next ? rq->cfs.next->vruntime : 0;
	if (hrtimer_is_queued(&rq->hrtick_timer))
		o[C_HRTICK] = hrtimer_get_expires(&rq->hrtick_timer);
	o[C_HRTICK_PLACE] = timer_place(&rq->hrtick_timer);
#if AT_LEAST(6, 12)
	server_timer(&rq->fair_server.inactive_timer, o);
	server_timer(&rq->fair_server.dl_timer, o);
	if (rq->fair_server.dl_server_active) {
		const struct sched_dl_entity *server = &rq->fair_server;

		o[C_SERVER_STATE] = 1 + server->dl_throttled + 2 * server->dl_defer_armed + 4 * server->dl_defer_running;
#ifdef LAB_SERVER_IDLE /* looked for by the build */
		o[C_SERVER_STATE] += 8 * server->dl_defer_idle;
#endif
		o[C_SERVER_RUNTIME] = server->runtime;
		o[C_SERVER_DEADLINE] = server->deadline;
	}
#endif
	if (searched && searched->shared)
		o[C_IDLE_CORES] = searched->shared->has_idle_cores;
#ifdef CONFIG_SCHED_CACHE
	o[C_NR_PREF_LLC_RUNNING] = rq->nr_pref_llc_running;
	if (rq->sd) { /* a byte for each of eight */
		unsigned int i;

		for (i = 0; i < rq->sd->llc_max; i++)
			o[C_LLC_COUNTS] += (u64)rq->sd->llc_counts[i] << 8 * (i % 8);
	}
	o[C_EPOCH] = rq->cpu_epoch;
	o[C_EPOCH_NEXT] = rq->cpu_epoch_next;
	o[C_EPOCH_RUNTIME] = rq->cpu_runtime;
#endif
}

enum { D_FLAGS, D_LAST_BALANCE, D_INTERVAL, D_FAILED, D_IDLE_COST, D_IMBALANCE_PCT, D_IMB_NUMA_NR, D_GROUPS,
       D_IMBALANCE, D_CAPACITY, D_MIN_CAPACITY, D_MAX_CAPACITY, D_NEXT_UPDATE };

int lab_state_domain(int cpu, int level, u64 *o, unsigned long *span)
{
	struct sched_domain *sd;
	struct sched_group *sg;

	memset(o, 0, LAB_DOMAIN_WORDS * sizeof *o);
	for_each_domain(cpu, sd) {
		if (level--)
			continue;
		o[D_FLAGS] = sd->flags;
		o[D_LAST_BALANCE] = sd->last_balance;
		o[D_INTERVAL] = sd->balance_interval;
		o[D_FAILED] = sd->nr_balance_failed;
		o[D_IDLE_COST] = sd->max_newidle_lb_cost;
		o[D_IMBALANCE_PCT] = sd->imbalance_pct;
#if AT_LEAST(5, 18)
		o[D_IMB_NUMA_NR] = sd->imb_numa_nr;
#endif
		sg = sd->groups; /* the local one */
		o[D_IMBALANCE] = sg->sgc->imbalance;
		o[D_CAPACITY] = sg->sgc->capacity;
		o[D_MIN_CAPACITY] = sg->sgc->min_capacity;
		o[D_MAX_CAPACITY] = sg->sgc->max_capacity;
		o[D_NEXT_UPDATE] = sg->sgc->next_update;
		if (!span)
			return 1;
		do {
			o[D_GROUPS]++;
			sg = sg->next;
		} while (sg != sd->groups);
		memcpy(span, cpumask_bits(sched_domain_span(sd)), NR_CPUS / 8);
		return 1;
	}
	return 0;
}

enum { G_ON_RQ, G_WEIGHT, G_VRUNTIME, G_LOAD_AVG, G_UTIL_AVG, G_Q_WEIGHT, G_Q_LOAD_AVG, G_Q_UTIL_AVG, G_TG_LOAD, G_DEADLINE,
       G_VLAG, G_DELAYED, G_REL_DEADLINE, G_SLICE, G_THROTTLED, G_RUNTIME, G_PERIOD_AT,
       G_ON_LIST, G_H_LOAD, G_LOAD_SUM, G_UTIL_SUM, G_Q_LOAD_SUM, G_Q_UTIL_SUM, G_CONTRIB, G_PROPAGATE, G_PROP_SUM, G_REMOVED,
       G_REMOVED_LOAD, G_THROTTLE_COUNT, G_H_NR, G_POOL, G_PERIOD_PLACE, G_SLACK_PLACE,
       G_TG_LOAD_AT, G_LIST_AT, G_ZERO, G_SUM, G_NEXT, G_Q_LAST_UPDATE, G_Q_MIN_SLICE,
       G_TG_RUNNABLE, G_RUNNABLE_CONTRIB };

/* Its place among the queues whose averages are updated, from 1; 0 if it is not among them. */
static int list_at(struct cfs_rq *q)
{
	struct cfs_rq *other;
	int at = 0;

	if (!q->on_list)
		return 0;
	list_for_each_entry(other, &q->rq->leaf_cfs_rq_list, leaf_cfs_rq_list) {
		at++;
		if (other == q)
			return at;
	}
	return -1;
}

void lab_state_group(int group, int cpu, u64 *o)
{
	struct task_group *tg = lab_task_group(group);
#if AT_LEAST(7, 0)
	struct cfs_rq *q = per_cpu_ptr(tg->cfs_rq, cpu);
	struct sched_entity *se = tg_se(tg, cpu);
#else
	struct cfs_rq *q = tg->cfs_rq[cpu];
	struct sched_entity *se = tg->se[cpu];
#endif

	memset(o, 0, LAB_GROUP_WORDS * sizeof *o);
	o[G_ON_RQ] = se->on_rq;
	o[G_WEIGHT] = se->load.weight;
	o[G_VRUNTIME] = se->vruntime;
	o[G_LOAD_AVG] = se->avg.load_avg;
	o[G_UTIL_AVG] = se->avg.util_avg;
	o[G_Q_WEIGHT] = q->load.weight;
	o[G_Q_LOAD_AVG] = q->avg.load_avg;
	o[G_Q_UTIL_AVG] = q->avg.util_avg;
	o[G_TG_LOAD] = atomic_long_read(&tg->load_avg);
#if AT_LEAST(6, 6)
	o[G_DEADLINE] = se->deadline;
	o[G_VLAG] = se->vlag;
	o[G_SLICE] = se->slice;
#endif
#if AT_LEAST(6, 12)
	o[G_DELAYED] = se->sched_delayed;
	o[G_REL_DEADLINE] = se->rel_deadline;
	o[G_TG_LOAD_AT] = q->last_update_tg_load_avg;
#endif
	o[G_THROTTLED] = q->throttled;
	o[G_RUNTIME] = q->runtime_remaining;
	o[G_PERIOD_AT] = hrtimer_get_expires(&tg->cfs_bandwidth.period_timer);
	o[G_ON_LIST] = q->on_list;
	o[G_H_LOAD] = q->h_load;
	o[G_LOAD_SUM] = se->avg.load_sum;
	o[G_UTIL_SUM] = se->avg.util_sum;
	o[G_Q_LOAD_SUM] = q->avg.load_sum;
	o[G_Q_UTIL_SUM] = q->avg.util_sum;
	o[G_Q_LAST_UPDATE] = q->avg.last_update_time;
	o[G_CONTRIB] = q->tg_load_avg_contrib;
#if AT_LEAST(7, 3)
	o[G_TG_RUNNABLE] = atomic_long_read(&tg->runnable_avg);
	o[G_RUNNABLE_CONTRIB] = q->tg_runnable_avg_contrib;
#endif
	o[G_PROPAGATE] = q->propagate;
	o[G_PROP_SUM] = q->prop_runnable_sum;
	o[G_REMOVED] = q->removed.nr;
	o[G_REMOVED_LOAD] = q->removed.load_avg;
	o[G_THROTTLE_COUNT] = q->throttle_count;
	o[G_H_NR] = h_nr(q);
	o[G_POOL] = tg->cfs_bandwidth.runtime;
	o[G_LIST_AT] = list_at(q);
	o[G_SUM] = vruntime_sum(q);
	o[G_NEXT] = q->next ? q->next->vruntime : 0;
#if AT_LEAST(6, 12)
	if (q->tasks_timeline.rb_root.rb_node)
		o[G_Q_MIN_SLICE] = rb_entry(q->tasks_timeline.rb_root.rb_node, struct sched_entity, run_node)->min_slice;
#endif
#ifdef LAB_ZERO_VRUNTIME
	o[G_ZERO] = q->zero_vruntime;
#else
	o[G_ZERO] = q->min_vruntime;
#endif
	o[G_PERIOD_PLACE] = timer_place(&tg->cfs_bandwidth.period_timer);
	o[G_SLACK_PLACE] = timer_place(&tg->cfs_bandwidth.slack_timer);
}
