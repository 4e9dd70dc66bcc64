//! Tables as users write them beside what becomes of them.

use expect_test::{Expect, expect};

use super::*;

fn read(text: &str) -> Result<WorkloadRead, WorkloadError> {
    WorkloadRead::parse(text, "s.toml")
}

/// The rows of a table, each in a line.
fn check_rows(text: &str, expected: Expect) {
    let seen = match read(text) {
        Ok(WorkloadRead::RtApp(file)) => format!("rt-app file {file}\n"),
        Ok(WorkloadRead::Rows(rows)) => rows
            .iter()
            .map(|WorkloadRow { key, workload: w }| {
                let background = w.tasks.iter().filter(|task| task.background).count();
                format!("[{key}] {}: {} tasks, {background} in the background\n", w.name, w.tasks.len())
            })
            .collect(),
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&seen);
}

/// The one workload of a table, described.
fn check(text: &str, expected: Expect) {
    let seen = match read(text) {
        Ok(WorkloadRead::Rows(rows)) => rows.iter().map(|row| row.workload.describe()).collect(),
        other => format!("{other:?}"),
    };
    expected.assert_eq(&seen);
}

#[test]
fn lists_give_a_row_for_each_value() {
    check_rows(
        "[workload]\nmodel = 'hackbench'\ngroups = 2\npairs = 2\n",
        expect![[r#"
        [] hackbench: 9 tasks, 0 in the background
    "#]],
    );
    check_rows(
        "[workload]\nmodel = 'hackbench'\ngroups = [1, 2]\npairs = 3\ntransport = ['pipe', 'socket']\n",
        expect![[r#"
            [1 pipe] hackbench: 7 tasks, 0 in the background
            [1 socket] hackbench: 7 tasks, 0 in the background
            [2 pipe] hackbench: 13 tasks, 0 in the background
            [2 socket] hackbench: 13 tasks, 0 in the background
        "#]],
    );
    check_rows(
        "[workload]\nname = 'under ping'\nmodel = 'barrier'\nthreads = [2, 4]\nwork = '1.94ms'\n[[workload.with]]\nmodel = 'ping'\n",
        expect![[r#"
            [2] under ping: 3 tasks, 1 in the background
            [4] under ping: 5 tasks, 1 in the background
        "#]],
    );
    check_rows(
        "[workload]\nrt-app = 'tasks.json'\n",
        expect![[r#"
        rt-app file tasks.json
    "#]],
    );
}

/// Tables with something wrong, and what is said.
const WRONG: &[&str] = &[
    "[workload]\nname = 'x'\n",
    "[workload]\nmodel = 'quake'\n",
    "[workload]\nmodel = 'hogs'\nrt-app = 'x'\n",
    "[workload]\nrt-app = 'x'\nduration = '1s'\n",
    "[workload]\nmodel = 'hogs'\nhogs = 4\ncolour = 'red'\n",
    "[workload]\nmodel = 'hogs'\ngroup = '/a'\n",
    "[workload]\nmodel = 'hogs'\nhogs = [4, 'many']\n",
    "[workload]\nmodel = 'hogs'\nhogs = []\n",
    "[workload]\nmodel = 'hogs'\nhogs = 1.5\n",
    "[workload]\nmodel = 'barrier'\nthreads = 0\n",
    "[workload]\nmodel = 'barrier'\n[workload.with]\nthreads = 3\n",
    "[[workload.task]]\nname = 'a'\n",
    "[[workload.task]]\nprogram = 'yield'\n",
    "[[workload.task]]\nname = 'a'\nprogram = ['run 5ms', 'rum 5ms']\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'run 5'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'run 5ms 6ms'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'lock'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'loop 3; yield'\n",
    "[[workload.task]]\nname = 'a'\nprogram = ['yield', 'end']\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'jump x'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'fork b'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'io-read sda 4096'\n",
    "[[workload.task]]\nname = 'a'\nprogram = ['lock m', 'run 1ms']\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'sleep uniform(5ms,1ms)'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'yield'\npolicy = 'fifo'\nnice = 3\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'yield'\nforked = true\nstart = '1s'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'yield'\nforked = true\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'yield'\nniceness = 3\n",
    "[workload.device.sda]\ndepth = 1\n[[workload.task]]\nname = 'a'\nprogram = 'io-read sda 512'\n",
    "[workload.barrier]\nb = 3\n[[workload.task]]\nname = 'a'\ncount = 2\nprogram = 'barrier b'\n",
    "[workload]\nduration = '0'\n[[workload.task]]\nname = 'a'\nprogram = 'yield'\n",
    "[workload]\nmodel = 'hogs'\nhogs = 4000000000\n",
    "[workload]\nmodel = 'hackbench'\ngroups = 100000\npairs = 100000\n",
    "[workload]\nmodel = 'hogs'\nnice = '0 99'\n",
    "[[workload.task]]\nname = 'a'\ncount = 4000000000\nprogram = 'yield'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'loop 4000000000; set w 1; end'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'loop forever; run uniform(0, 0); end'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'run gamma(1ms)'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'run 99999999999s'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'read p 1'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'yield'\nnice = 100\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'yield'\npolicy = 'rr'\npriority = 1000\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'sched fifo priority=0'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'yield'\nutil_min = 900\nutil_max = 100\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'yield'\npolicy = 'deadline'\nruntime = '5ms'\ndeadline = '1ms'\n",
    "[workload.group]\n'/a' = { weight = 0 }\n[[workload.task]]\nname = 'a'\nprogram = 'yield'\n",
    "[workload.group]\n'/a' = { weight = 99999999 }\n[[workload.task]]\nname = 'a'\nprogram = 'yield'\n",
    "[workload.group]\n'/a' = { shares = 1 }\n[[workload.task]]\nname = 'a'\nprogram = 'yield'\n",
    "[workload.group]\n'/a' = { quota = '0' }\n[[workload.task]]\nname = 'a'\nprogram = 'yield'\n",
    "[workload.group]\n'/a' = { quota = '1ms', period = '2s' }\n[[workload.task]]\nname = 'a'\nprogram = 'yield'\n",
    "[workload.barrier]\nb = 0\n[[workload.task]]\nname = 'a'\nprogram = 'barrier b'\n",
    "[workload.pipe]\np = 0\n[[workload.task]]\nname = 'a'\nprogram = 'write p 1; read p 1'\n",
    "[workload.device]\nd = { service = '1ms', depth = 0 }\n[[workload.task]]\nname = 'a'\nprogram = 'yield'\n",
    "[workload.interrupt]\nnic = { cpu = 0, every = 'uniform(0,0)' }\n[[workload.task]]\nname = 'a'\nprogram = 'yield'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'mark x'\n[[workload.measure]]\nname = 's'\nrule = 'rate'\nlabel = 'x'\n\
     [[workload.measure]]\nname = 's'\nrule = 'elapsed'\nfrom = 'x'\nto = 'x'\n",
    "[[workload.task]]\nname = 'a'\nprogram = 'yield'\n[[workload.measure]]\nname = 's'\nrule = 'rate'\nlabel = 'x'\n",
];

#[test]
fn what_is_wrong_is_reported_with_file_and_line() {
    let mut seen = String::new();
    for text in WRONG {
        let error = read(text).map(|_| ()).unwrap_err();
        seen += &format!(
            "{}  {error}\n",
            text.replace("[workload]\n", "").replace("[[workload.task]]\nname = 'a'\n", "")
        );
    }
    expect![[r#"
        name = 'x'
          s.toml:1:1: "workload": say what runs by one of "model", "rt-app", "task"
        model = 'quake'
          s.toml:2:9: "model": there is no model "quake"; there are "barrier", "batch", "copies", "dbench", "events", "fork-storm", "hackbench", "hogs", "io", "kernbench", "oltp", "netperf", "periodic", "ping", "pipes", "schbench", "sleepers", "spawn", "spinners", "stream", "sysbench", "tbench", "token"
        model = 'hogs'
        rt-app = 'x'
          s.toml:3:1: "rt-app": only one of "model", "rt-app", "task" can be given
        rt-app = 'x'
        duration = '1s'
          s.toml:3:1: unknown key "duration" in [workload]; known keys are "rt-app"
        model = 'hogs'
        hogs = 4
        colour = 'red'
          s.toml:4:1: unknown key "colour" in [workload]; known keys are "hogs", "wall", "overhead", "block", "nice", "groups", "cpus", "start_cpu", "policy", "nice", "priority", "slice", "util_min", "util_max", "cgroup", "cpus", "name", "duration", "with", "group"
        model = 'hogs'
        group = '/a'
          s.toml:3:9: "group": [workload.group] describes groups; a model is put into one by cgroup = "/a"
        model = 'hogs'
        hogs = [4, 'many']
          s.toml:3:12: "hogs": a whole number from 0 to 4294967295 is expected, not "many"
        model = 'hogs'
        hogs = []
          s.toml:3:8: "hogs": the list is empty, so there is nothing to run
        model = 'hogs'
        hogs = 1.5
          s.toml:3:8: "hogs": a number, text or true or false is expected, not a fraction
        model = 'barrier'
        threads = 0
          s.toml:2:1: "model": barrier "round": the number of parties is 0, allowed is 1 or more
        model = 'barrier'
        [workload.with]
        threads = 3
          s.toml:3:1: "with": "model" is missing
          s.toml:1:1: "program": is missing in [[workload.task]]
        [[workload.task]]
        program = 'yield'
          s.toml:1:1: "name": is missing in [[workload.task]]
        program = ['run 5ms', 'rum 5ms']
          s.toml:3:23: "program": in "rum 5ms": there is no op "rum"; there are run, run-kernel, run-wall, touch, access, read-shared, write-shared, sleep, zero, origin, come-to-waker, heard, interrupt-on, hotplug, timer, own-timer, lock, unlock, wait, signal, broadcast, post, take, barrier, write, read, futex-wait, futex-wake, io-read, io-write, queue, raise, fork, exec, join, wait-children, exit, exit-group, yield, own-name, name, cpus, sched, group, cpus-of, sched-of, group-of, freeze, thaw, weight, shares, idle, quota, clamps, switch, mark, mark-late, loop, end, label, jump, jump-if, jump-odds, set, add, load
        program = 'run 5'
          s.toml:3:11: "program": in "run 5": a span like 5ms or 1.5us is expected, not "5"
        program = 'run 5ms 6ms'
          s.toml:3:11: "program": in "run 5ms 6ms": "6ms" is too much; write run SPAN
        program = 'lock'
          s.toml:3:11: "program": in "lock": something is missing; write lock NAME
        program = 'loop 3; yield'
          s.toml:3:11: "program": a loop without an end
        program = ['yield', 'end']
          s.toml:3:21: "program": an end without a loop
        program = 'jump x'
          s.toml:3:11: "program": there is no label "x"
        program = 'fork b'
          s.toml:3:11: "program": in "fork b": there is no forked task "b"
        program = 'io-read sda 4096'
          s.toml:3:11: "program": in "io-read sda 4096": there is no device "sda"
        program = ['lock m', 'run 1ms']
          s.toml:3:22: the task ends while it holds mutex "m"
        program = 'sleep uniform(5ms,1ms)'
          s.toml:3:11: "program": in "sleep uniform(5ms,1ms)": "uniform(5ms,1ms)" has its bounds reversed; write uniform(1ms,5ms)
        program = 'yield'
        policy = 'fifo'
        nice = 3
          s.toml:1:1: "policy": nice has no meaning for policy "fifo"
        program = 'yield'
        forked = true
        start = '1s'
          s.toml:1:1: "start": a forked task starts when it is forked
        program = 'yield'
        forked = true
          s.toml: workload "tasks": no task starts by itself
        program = 'yield'
        niceness = 3
          s.toml:4:1: unknown key "niceness" in [[workload.task]]; known keys are "name", "count", "program", "forked", "start", "start_cpu", "process", "kthread", "cpus", "group", "policy", "footprint", "memory_bound", "background", "nice", "priority", "slice", "util_min", "util_max", "runtime", "deadline", "period"
        [workload.device.sda]
        depth = 1
        program = 'io-read sda 512'
          s.toml:1:1: "service": is missing in "sda"
        [workload.barrier]
        b = 3
        count = 2
        program = 'barrier b'
          s.toml:2:1: barrier "b": it waits for 3 parties but only 2 tasks ever reach it
        duration = '0'
        program = 'yield'
          s.toml:2:12: "duration": the time is zero; give it a span like "10s", or leave it out
        model = 'hogs'
        hogs = 4000000000
          s.toml:2:9: "model": hogs of 4000000000 tasks is too large: Linux numbers no more than 4194304
        model = 'hackbench'
        groups = 100000
        pairs = 100000
          s.toml:2:9: "model": hackbench of 10000000000 tasks is too large: Linux numbers no more than 4194304
        model = 'hogs'
        nice = '0 99'
          s.toml:3:8: "nice": numbers from -20 to 19 like "0 0 5 -5" is expected, not "0 99"
        count = 4000000000
        program = 'yield'
          s.toml:3:9: "count": 4000000000 is outside 0 to 1000000
        program = 'loop 4000000000; set w 1; end'
          s.toml:3:11: this loops 4000000000 times without any time passing, which is 8000000000 steps; at most 100000000 are possible; put a run or a sleep into it
        program = 'loop forever; run uniform(0, 0); end'
          s.toml:3:11: this loops forever without any time passing; put a run or a sleep into it
        program = 'run gamma(1ms)'
          s.toml:3:11: "program": in "run gamma(1ms)": "gamma(1ms)" is not one of uniform(LOW,HIGH), exponential(MEAN), normal(MEAN,SD), stalls(USUAL,STALL,ONE_IN)
        program = 'run 99999999999s'
          s.toml:3:11: "program": in "run 99999999999s": "99999999999s" is longer than 584 years
        program = 'read p 1'
          s.toml:3:11: channel "p": it is read but never written
        program = 'yield'
        nice = 100
          s.toml:4:8: "nice": a whole number from -20 to 19 is expected, not 100
        program = 'yield'
        policy = 'rr'
        priority = 1000
          s.toml:5:12: "priority": a whole number from 1 to 99 is expected, not 1000
        program = 'sched fifo priority=0'
          s.toml:3:11: "program": in "sched fifo priority=0": a whole number from 1 to 99 is expected, not 0
        program = 'yield'
        util_min = 900
        util_max = 100
          s.toml:1:1: "policy": util_max minus util_min is -800, allowed is 0 or more
        program = 'yield'
        policy = 'deadline'
        runtime = '5ms'
        deadline = '1ms'
          s.toml:1:1: "policy": deadline minus runtime is -4000000, allowed is 0 or more
        [workload.group]
        '/a' = { weight = 0 }
        program = 'yield'
          s.toml:2:19: "weight": 0 is outside 1 to 10000
        [workload.group]
        '/a' = { weight = 99999999 }
        program = 'yield'
          s.toml:2:19: "weight": 99999999 is outside 1 to 10000
        [workload.group]
        '/a' = { shares = 1 }
        program = 'yield'
          s.toml:2:19: "shares": 1 is outside 2 to 262144
        [workload.group]
        '/a' = { quota = '0' }
        program = 'yield'
          s.toml:2:18: "quota": 0 is outside 1ms to 31536000s
        [workload.group]
        '/a' = { quota = '1ms', period = '2s' }
        program = 'yield'
          s.toml:2:34: "period": 2s is outside 1ms to 1s
        [workload.barrier]
        b = 0
        program = 'barrier b'
          s.toml:2:1: barrier "b": the number of parties is 0, allowed is 1 or more
        [workload.pipe]
        p = 0
        program = 'write p 1; read p 1'
          s.toml:2:1: channel "p": the capacity is 0, allowed is 1 or more
        [workload.device]
        d = { service = '1ms', depth = 0 }
        program = 'yield'
          s.toml:2:32: "depth": 0 is outside 1 to 4294967295
        [workload.interrupt]
        nic = { cpu = 0, every = 'uniform(0,0)' }
        program = 'yield'
          s.toml:2:1: interrupt source "nic": the mean of the interval in ns is 0, allowed is 1 or more
        program = 'mark x'
        [[workload.measure]]
        name = 's'
        rule = 'rate'
        label = 'x'
        [[workload.measure]]
        name = 's'
        rule = 'elapsed'
        from = 'x'
        to = 'x'
          s.toml:8:1: "name": there is another measure "s"
        program = 'yield'
        [[workload.measure]]
        name = 's'
        rule = 'rate'
        label = 'x'
          s.toml:4:1: measure "s": no op marks "x"; write it with mark "x" where it is reached
    "#]].assert_eq(&seen);
}

#[test]
fn tasks_can_be_described_in_the_scenario() {
    check(
        "[workload]
name = 'shop'
duration = '2s'

[workload.program]
flush = ['io-write disk 4096', 'post flushed']

[workload.group]
'/shop' = { weight = 200, quota = '50ms' }

[workload.device]
disk = { service = 'normal(80us, 10us)', depth = 4 }

[workload.queue]
log = 'unbound'

[[workload.task]]
name = 'client'
count = 3
nice = 5
cpus = '0-3'
program = ['''
    loop forever
      sleep exponential(2ms)
      lock till; run uniform(100us, 300us); unlock till
      mark sold 1
    end
''']

[[workload.task]]
name = 'clerk'
policy = 'fifo'
priority = 10
group = '/shop'
start = '1ms'
program = ['fork helper', 'loop 5', 'queue log flush; take flushed', 'end', 'wait-children']

[[workload.task]]
name = 'helper'
forked = true
background = true
program = 'run 3ms'

[[workload.measure]]
name = 'sales'
rule = 'rate'
label = 'sold'
",
        expect![[r#"
            shop: 5 tasks, 4 of them from the start; killed after 2s
            mutex till
            semaphore flushed from 0
            device disk: 4 at once, service normal(80us,10us), completed by interrupt at the submitter's CPU
            workqueue log: unbound
            group /shop: shares 2048, 50ms in 100ms
            tasks
                 0 client-0 .. client-2 (3), from the start, other nice=5, cpus 0-3: program client
                 3 clerk, from 1ms, fifo priority=10, group /shop: program clerk
                 4 helper, forked, in the background: program helper
            program flush
              io-write disk 4096
              post flushed
            program client
              loop forever
                sleep exponential(2ms)
                lock till
                run uniform(100us,300us)
                unlock till
                mark sold 1
              end
            program clerk
              fork helper
              loop 5
                queue log flush
                take flushed
              end
              wait-children
            program helper
              own-name
              run 3ms
            measure sales in /s, higher is better: sum of sold per second
        "#]],
    );
}

#[test]
fn barriers_count_the_tasks_that_come() {
    let text = "[[workload.task]]\nname = 'a'\ncount = 3\nprogram = 'run 1ms; barrier b'\n[[workload.task]]\nname = 'c'\nprogram = 'barrier b'\n";
    let Ok(WorkloadRead::Rows(rows)) = read(text) else { panic!("rows") };
    assert_eq!(rows[0].workload.objects.barriers[0].parties, 4);
}

/// Every op once, as it is printed.
const EVERY_OP: &str = "\
run 5ms
run uniform(1ms,2ms)
run-kernel 5us preempt-off cond-resched=1us
run-wall 5ms block=32us
touch buffer 4096
access buffer random read=100 write=50 stride=64 streaming
read-shared buffer 4096
write-shared buffer 4096
sleep 1ms
sleep normal(1ms,100us)
zero
origin 5ms
come-to-waker
heard 300us
interrupt-on 2
hotplug 3 inactive
hotplug 3 active
timer tick 10ms keep-grid
own-timer 3 10ms
lock m
wait c m
unlock m
signal c
broadcast c
post s
take s
barrier b
write p 100
read p 100
futex-wait w 3 timeout=2ms
futex-wait w remembered
futex-wake w 1
io-read disk 4096
io-write disk 4096
queue log flush
raise nic
fork child
join child
exec other
wait-children
yield
own-name
name \"new name\"
cpus 0-3,8
cpus all
sched other nice=-5 slice=3ms util_min=10 util_max=900
sched fifo priority=50
sched deadline runtime=1ms deadline=2ms period=4ms
group /a/b
group /
cpus-of child 0-3,8
cpus-of child all
sched-of child other nice=-5
group-of child /a/b
group-of child /
freeze child
thaw child
weight /a/b 200
shares /a/b 512
idle /a/b true
quota /a/b 10ms period=20ms burst=5ms
quota /a/b none
clamps /a/b util_min=100 util_max=205
clamps /a/b util_max=0
switch NO_SIS_UTIL
mark \"all done\" 7
mark-late late 3
loop 10
  loop forever
    label L69
    yield
    load w
    set w 3
    add w -1
    jump-if w != 3 L69
    jump-odds 30 L69
    jump L69
  end
end
exit-group
exit
";

#[test]
fn what_is_printed_of_a_program_can_be_read_again() {
    let text = format!(
        "[workload.region]\nbuffer = '4K'\n[workload.device]\ndisk = {{ service = '1us' }}\n[workload.queue]\nlog = 'bound'\n\
         [workload.interrupt]\nnic = {{ cpu = 0, after = '1us' }}\n[workload.program]\nflush = 'run 1us'\n\
         [[workload.task]]\nname = 'child'\nforked = true\nprogram = 'run 1us'\n\
         [[workload.task]]\nname = 'a'\nprogram = '''\n{EVERY_OP}'''\n"
    );
    let Ok(WorkloadRead::Rows(rows)) = read(&text) else { panic!("{:?}", read(&text)) };
    let described = rows[0].workload.describe();
    let printed = described.split("\nprogram a\n").nth(1).unwrap();
    assert_eq!(
        printed.lines().map(str::trim).collect::<Vec<_>>(),
        EVERY_OP.lines().map(str::trim).collect::<Vec<_>>()
    );
    // And nothing was left out of the list.
    for (usage, _) in op::USAGE {
        let verb = usage.split(' ').next().unwrap();
        assert!(EVERY_OP.lines().any(|line| line.trim().split(' ').next() == Some(verb)), "{verb}");
    }
}

#[test]
fn the_manual_has_every_op_and_model() {
    let manual = include_str!("../../../../docs/scenarios.md");
    for (usage, about) in op::USAGE {
        let row = format!("| `{}` | {about} |", usage.replace('|', "\\|"));
        assert!(manual.contains(&row), "docs/scenarios.md lacks this row:\n{row}");
    }
    for name in Model::NAMES {
        let model = Model::named(name).unwrap();
        assert!(manual.contains(&format!("### {name}\n")), "docs/scenarios.md lacks \"### {name}\"");
        for param in model.params() {
            let row = format!("| `{}` | {} | {} |", param.name, param.value, param.about);
            assert!(manual.contains(&row), "docs/scenarios.md lacks this row for {name}:\n{row}");
        }
    }
}

#[test]
fn the_examples_of_the_manual_can_be_read_and_damaged_ones_do_no_harm() {
    let manual = include_str!("../../../../docs/scenarios.md");
    let blocks: Vec<&str> =
        manual.split("```toml\n").skip(1).map(|b| b.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 5);
    for block in blocks {
        let runs =
            ["model", "rt-app", "task"].iter().any(|key| block.contains(key) && !block.contains("program]"));
        let task = if runs { "" } else { "[[workload.task]]\nname = 'x'\nprogram = 'yield; mark sold 1'\n" };
        let text = format!("{block}{task}");
        read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        for (end, c) in text.char_indices() {
            let (before, behind) = (&text[..end], &text[end + c.len_utf8()..]);
            let _ = read(before);
            let _ = read(&format!("{before}{behind}"));
            let _ = read(&format!("{before}0{behind}"));
        }
    }
}
