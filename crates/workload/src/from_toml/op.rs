//! One op in words: `run 5ms`, `lock a`, `loop 10`.

use core::ops::RangeInclusive;

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use super::names::{AnyTask, Names};
use crate::check::attr_is_valid;
use crate::param::{ParamValue, read_duration};
use crate::{
    AccessSpec, Deadline, Dist, Expected, FOREVER, GroupAct, GroupId, Miss, OWN_TIMERS_MAX, Op, Param,
    Pattern, Plug, Policy, SchedAttr, Section, TaskAct, Test, Timer, WordId,
};

/// A step of a program: an op, or one that depends on other steps.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Op(Op),
    Loop(u32),
    End,
    Label(String),
    Jump(String),
    JumpIf(WordId, Test, i32, String),
    JumpOdds(u16, String),
}

/// Each op with its operands: the first word decides, brackets enclose what is optional.
pub(super) const USAGE: &[(&str, &str)] = &[
    (
        "run SPAN",
        "compute in user mode; SPAN may be drawn: uniform(A,B), exponential(MEAN), normal(MEAN,SD), stalls(USUAL,STALL,ONE_IN)",
    ),
    ("run-kernel SPAN [preempt-off] [cond-resched=SPAN]", "compute in kernel mode"),
    (
        "run-wall SPAN [block=SPAN]",
        "compute until SPAN has passed on the clock, which is read after each block (32us)",
    ),
    ("touch REGION BYTES", "write pages for the first time"),
    (
        "access REGION PATTERN [read=BYTES] [write=BYTES] [stride=BYTES] [streaming]",
        "read or write memory; PATTERN is sequential, random, chase or chase-sequential",
    ),
    (
        "read-shared REGION BYTES",
        "read what other tasks have written: its lines come from the CPU that wrote them last",
    ),
    ("write-shared REGION BYTES", "write what other tasks read: their copies of its lines are invalidated"),
    ("sleep SPAN", "sleep from now; SPAN may be drawn"),
    ("zero", "make this moment time zero of the workload"),
    ("origin SPAN", "sleep until SPAN after zero; timers count from there"),
    (
        "come-to-waker",
        "a task that wakes this one next does so on its own CPU, to which this one is bound from then on",
    ),
    ("heard SPAN", "an idle CPU sees the next wake-up SPAN after it"),
    (
        "interrupt-on CPU",
        "the interrupt that ends the next sleep comes to CPU, not to where the task falls asleep",
    ),
    (
        "hotplug CPU STATE",
        "take a CPU out of use (offline) or into it (active); halfway it is there for bound threads of the kernel alone (inactive, online)",
    ),
    ("timer NAME SPAN [keep-grid]", "move a shared timer on and sleep until then"),
    ("own-timer N SPAN [keep-grid]", "the same with the task's own timer N, 0 to 7"),
    ("lock NAME", "take a mutex, or a lock that is spun for"),
    ("unlock NAME", "give it back"),
    ("wait COND MUTEX", "give the mutex back until the condition is signalled"),
    ("signal COND", "wake the one that waited longest"),
    ("broadcast COND", "wake all that wait"),
    ("post SEM", "add one to a semaphore"),
    ("take SEM", "take one from it, or sleep until there is one"),
    ("barrier NAME", "meet the others"),
    ("write CHANNEL BYTES", "write to a pipe or socket"),
    ("read CHANNEL BYTES", "read from it"),
    ("futex-wait WORD VALUE|remembered [timeout=SPAN]", "sleep if the word has that value"),
    ("futex-wake WORD N", "wake up to N that sleep on the word"),
    ("io-read DEVICE BYTES", "read from a block device"),
    ("io-write DEVICE BYTES", "write to it"),
    ("queue QUEUE PROGRAM", "hand a program to a kworker"),
    ("raise INTERRUPT", "provoke an interrupt"),
    ("fork TASK", "make a new task"),
    ("exec NAME", "execute another program with that comm, which continues here"),
    ("join TASK", "sleep until the one forked last has ended"),
    ("wait-children", "sleep until all forked tasks have ended"),
    ("exit", "end the task"),
    ("exit-group", "end the task and its process"),
    ("yield", "let others run"),
    ("own-name", "take the comm of the task's own name"),
    ("name COMM", "take another comm"),
    ("cpus LIST|all", "change the allowed CPUs"),
    (
        "sched POLICY [KEY=VALUE ...]",
        "change policy (other, batch, idle, fifo, rr, deadline) with nice, priority, slice, util_min, util_max, runtime, deadline, period",
    ),
    ("group PATH", "move to a task group"),
    (
        "cpus-of TASK LIST|all",
        "change the allowed CPUs of another task; if several have the name, say which, as in worker-3",
    ),
    ("sched-of TASK POLICY [KEY=VALUE ...]", "change the policy of another task, as sched does"),
    ("group-of TASK PATH", "move another task to a group"),
    ("freeze TASK", "stop another task where it is, until it is thawed"),
    ("thaw TASK", "let it go on"),
    ("weight PATH N", "change the weight of a group, 1 to 10000"),
    ("shares PATH N", "the same as of cgroup v1, 1024 for a weight of 100"),
    ("idle PATH true|false", "make a group one of SCHED_IDLE, or not"),
    (
        "quota PATH SPAN|none [period=SPAN] [burst=SPAN]",
        "change the quota of a group; the period is 100ms by default",
    ),
    (
        "clamps PATH [util_min=N] [util_max=N]",
        "change the bounds of utilisation of a group's tasks, 0 to 1024 (cpu.uclamp.min and max)",
    ),
    (
        "switch PART",
        "change the running kernel by part of a kernel string, as in NO_SIS_UTIL or base_slice_ns=3000000",
    ),
    ("mark LABEL [VALUE]", "write a mark into the trace"),
    ("mark-late LABEL N", "write a mark whose value is the time since the last expiry of own timer N, ns"),
    ("loop N|forever", "repeat the following N times, up to the matching end"),
    ("end", "end of a loop"),
    ("label NAME", "a place to jump to"),
    ("jump NAME", "go on there"),
    ("jump-if WORD ==|!=|<|> VALUE NAME", "jump there if the test of the word is true"),
    ("jump-odds PERMILLE NAME", "jump there with this probability out of 1000"),
    ("set WORD VALUE", "set a word"),
    ("add WORD VALUE", "add to it"),
    ("load WORD", "remember its value for futex-wait"),
];

/// Reads one op.
pub(super) fn read(words: &[String], names: &mut Names) -> Result<Step, String> {
    let mut line = Line { words, next: 1 };
    let verb = words[0].as_str();
    let step = step(verb, &mut line, names)?;
    match line.words.get(line.next) {
        Some(word) => Err(format!("\"{word}\" is too much; write {}", usage(verb).unwrap_or(verb))),
        None => Ok(step),
    }
}

/// The number of an own timer.
fn own_timer(line: &mut Line) -> Result<u8, String> {
    let slot: u8 = line.read()?;
    if usize::from(slot) >= OWN_TIMERS_MAX {
        return Err(format!("own timers are numbered 0 to {}", OWN_TIMERS_MAX - 1));
    }
    Ok(slot)
}

fn plug(line: &mut Line) -> Result<Plug, String> {
    let word = line.word()?;
    let found = Plug::TABLE.iter().find(|(_, name)| *name == word);
    found.map(|(plug, _)| *plug).ok_or_else(|| {
        let names: Vec<&str> = Plug::TABLE.iter().map(|(_, name)| *name).collect();
        format!("\"{word}\" is none of {}", names.join(", "))
    })
}

fn usage(verb: &str) -> Option<&'static str> {
    USAGE.iter().map(|(usage, _)| *usage).find(|usage| usage.split(' ').next() == Some(verb))
}

/// The words of an op that are not read yet.
struct Line<'a> {
    words: &'a [String],
    next: usize,
}

impl<'a> Line<'a> {
    fn word(&mut self) -> Result<&'a str, String> {
        let verb = &self.words[0];
        let word = self.words.get(self.next);
        let word =
            word.ok_or_else(|| format!("something is missing; write {}", usage(verb).unwrap_or(verb)))?;
        self.next += 1;
        Ok(word)
    }

    fn read<T: Param>(&mut self) -> Result<T, String> {
        let word = self.word()?;
        read_word(word)
    }

    /// An optional word.
    fn flag(&mut self, flag: &str) -> bool {
        let is_there = self.words.get(self.next).is_some_and(|word| word == flag);
        self.next += usize::from(is_there);
        is_there
    }

    /// The value of `key=value`, if it comes next.
    fn value_of(&mut self, key: &str) -> Option<&str> {
        let value = self.words.get(self.next)?.strip_prefix(key)?.strip_prefix('=')?;
        self.next += 1;
        Some(value)
    }

    /// The same, read.
    fn option<T: Param>(&mut self, key: &str) -> Result<Option<T>, String> {
        self.value_of(key).map(read_word).transpose()
    }
}

fn read_word<T: Param>(word: &str) -> Result<T, String> {
    let value = word.parse().map_or_else(|_| ParamValue::Text(word.to_string()), ParamValue::Int);
    T::read(&value)
}

fn read_within(word: &str, range: RangeInclusive<i64>) -> Result<i64, String> {
    let number = word.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        format!("a whole number from {} to {} is expected, not {word}", range.start(), range.end())
    })
}

fn read_i32(word: &str) -> Result<i32, String> {
    word.parse().map_err(|_| format!("a whole number is expected, not \"{word}\""))
}

fn step(verb: &str, line: &mut Line, names: &mut Names) -> Result<Step, String> {
    Ok(Step::Op(match verb {
        "run" | "sleep" => {
            let run = verb == "run";
            match read_dist(line.word()?)? {
                Dist::Constant(work) if run => Op::Run { work },
                Dist::Constant(span) => Op::Sleep { span },
                dist if run => Op::RunDraw { dist: names.w.dist(dist) },
                dist => Op::SleepDraw { dist: names.w.dist(dist) },
            }
        }
        "run-kernel" => {
            let work = line.read()?;
            let preempt_off = line.flag("preempt-off");
            let cond_resched: Option<Duration> = line.option("cond-resched")?;
            let cond_resched_ns = u32::try_from(cond_resched.unwrap_or_default().0)
                .map_err(|_| "cond-resched is at most 4 s".to_string())?;
            Op::RunKernel { work, section: Section { preempt_off, cond_resched_ns } }
        }
        "run-wall" => {
            let wall = line.read()?;
            Op::RunWall { wall, block: line.option("block")?.unwrap_or(Duration::micros(32)) }
        }
        "touch" => Op::Touch { region: names.known(line.word()?)?, bytes: line.read()? },
        "access" => access(line, names)?,
        word @ ("read-shared" | "write-shared") => {
            let region = names.known(line.word()?)?;
            Op::Share { region, bytes: line.read()?, write: word == "write-shared" }
        }
        "zero" => Op::Zero,
        "origin" => Op::Origin { delay: line.read()? },
        "come-to-waker" => Op::ComeToWaker,
        "heard" => Op::Heard { after: line.read()? },
        "interrupt-on" => Op::InterruptOn { cpu: CpuId(line.read()?) },
        "hotplug" => Op::Hotplug { cpu: CpuId(line.read()?), to: plug(line)? },
        "timer" | "own-timer" => {
            let timer = if verb == "timer" {
                Timer::Shared(names.made(line.word()?))
            } else {
                Timer::Own(own_timer(line)?)
            };
            let period = line.read()?;
            let miss = if line.flag("keep-grid") { Miss::KeepGrid } else { Miss::Rebase };
            Op::TimerWait { timer, period, miss }
        }
        "lock" => Op::Lock { mutex: names.made(line.word()?) },
        "unlock" => Op::Unlock { mutex: names.made(line.word()?) },
        "wait" => Op::CondWait { cond: names.made(line.word()?), mutex: names.made(line.word()?) },
        "signal" => Op::Signal { cond: names.made(line.word()?) },
        "broadcast" => Op::Broadcast { cond: names.made(line.word()?) },
        "post" => Op::SemPost { sem: names.made(line.word()?) },
        "take" => Op::SemWait { sem: names.made(line.word()?) },
        "barrier" => Op::Barrier { barrier: names.made(line.word()?) },
        "write" => Op::Write { channel: names.made(line.word()?), bytes: line.read()? },
        "read" => Op::Read { channel: names.made(line.word()?), bytes: line.read()? },
        "futex-wait" => {
            let word = names.made(line.word()?);
            let expected = match line.word()? {
                "remembered" => Expected::Remembered,
                value => Expected::Value(read_i32(value)?),
            };
            Op::FutexWait { word, expected, timeout: line.option("timeout")?.unwrap_or_default() }
        }
        "futex-wake" => Op::FutexWake { word: names.made(line.word()?), count: line.read()? },
        "io-read" | "io-write" => {
            let device = names.known(line.word()?)?;
            Op::BlockIo { device, bytes: line.read()?, write: verb == "io-write" }
        }
        "queue" => Op::QueueWork { queue: names.known(line.word()?)?, work: names.known(line.word()?)? },
        "raise" => Op::Raise { source: names.known(line.word()?)? },
        "fork" => Op::Fork { task: names.known(line.word()?)? },
        "join" => Op::Join { task: names.known(line.word()?)? },
        "exec" => Op::Exec { comm: names.w.comm(line.word()?) },
        "wait-children" => Op::WaitChildren,
        "exit" => Op::Exit,
        "exit-group" => Op::ExitGroup,
        "yield" => Op::Yield,
        "own-name" => Op::OwnComm,
        "name" => Op::SetComm { comm: names.w.comm(line.word()?) },
        "cpus" => {
            let cpus: Option<crate::CpuList> = line.read()?;
            Op::SetCpus { cpus: cpus.map(|cpus| names.w.cpus(cpus)) }
        }
        "sched" => {
            let attr = sched(line)?;
            Op::SetSched { attr: names.w.attr(attr) }
        }
        "group" => Op::SetGroup { group: names.w.group(line.word()?) },
        "cpus-of" => {
            let task = other(line, names)?;
            let cpus: Option<crate::CpuList> = line.read()?;
            Op::OfTask { task, act: TaskAct::Cpus(cpus.map(|cpus| names.w.cpus(cpus))) }
        }
        "sched-of" => {
            let task = other(line, names)?;
            let attr = sched(line)?;
            Op::OfTask { task, act: TaskAct::Sched(names.w.attr(attr)) }
        }
        "group-of" => {
            let task = other(line, names)?;
            Op::OfTask { task, act: TaskAct::Group(names.w.group(line.word()?)) }
        }
        "freeze" => Op::OfTask { task: other(line, names)?, act: TaskAct::Freeze },
        "thaw" => Op::OfTask { task: other(line, names)?, act: TaskAct::Thaw },
        "weight" => {
            let group = group(line, names)?;
            let weight = read_within(line.word()?, 1..=10_000)? as u32;
            Op::OfGroup { group, act: GroupAct::Weight(weight) }
        }
        "shares" => {
            let group = group(line, names)?;
            Op::OfGroup { group, act: GroupAct::Shares(read_within(line.word()?, 2..=262_144)? as u32) }
        }
        "idle" => {
            let group = group(line, names)?;
            let idle = match line.word()? {
                "true" => true,
                "false" => false,
                other => return Err(format!("\"{other}\" is neither true nor false")),
            };
            Op::OfGroup { group, act: GroupAct::Idle(idle) }
        }
        "quota" => {
            let group = group(line, names)?;
            Op::OfGroup { group, act: quota(line)? }
        }
        "clamps" => {
            let group = group(line, names)?;
            Op::OfGroup { group, act: clamps(line)? }
        }
        "switch" => Op::Switch { part: names.w.part(line.word()?) },
        "mark" => {
            let label = names.w.label(line.word()?);
            let value = match line.words.get(line.next) {
                Some(_) => {
                    line.word()?.parse().map_err(|_| "the value of a mark is a whole number".to_string())?
                }
                None => 0,
            };
            Op::Mark { label, value }
        }
        "mark-late" => Op::MarkLate { label: names.w.label(line.word()?), timer: own_timer(line)? },
        "loop" => {
            let times = line.word()?;
            return Ok(Step::Loop(if times == "forever" { FOREVER } else { read_word(times)? }));
        }
        "end" => return Ok(Step::End),
        "label" => return Ok(Step::Label(line.word()?.to_string())),
        "jump" => return Ok(Step::Jump(line.word()?.to_string())),
        "jump-if" => {
            let word = names.made(line.word()?);
            let test = match line.word()? {
                "==" => Test::Equal,
                "!=" => Test::Differs,
                "<" => Test::Less,
                ">" => Test::Greater,
                sign => return Err(format!("\"{sign}\" is not one of ==, !=, <, >")),
            };
            return Ok(Step::JumpIf(word, test, read_i32(line.word()?)?, line.word()?.to_string()));
        }
        "jump-odds" => return Ok(Step::JumpOdds(line.read()?, line.word()?.to_string())),
        "set" => Op::WordSet { word: names.made(line.word()?), value: read_i32(line.word()?)? },
        "add" => Op::WordAdd { word: names.made(line.word()?), value: read_i32(line.word()?)? },
        "load" => Op::WordLoad { word: names.made(line.word()?) },
        _ => {
            let verbs: Vec<&str> = USAGE.iter().filter_map(|(usage, _)| usage.split(' ').next()).collect();
            return Err(format!("there is no op \"{verb}\"; there are {}", verbs.join(", ")));
        }
    }))
}

/// A task that is described somewhere, forked or not.
fn other(line: &mut Line, names: &mut Names) -> Result<crate::SpecId, String> {
    Ok(names.known::<AnyTask>(line.word()?)?.0)
}

/// A group other than the root, which has no settings to change.
fn group(line: &mut Line, names: &mut Names) -> Result<GroupId, String> {
    names.w.group(line.word()?).ok_or_else(|| "the root group has no settings to change".to_string())
}

fn clamps(line: &mut Line) -> Result<GroupAct, String> {
    let mut bound = |key| -> Result<Option<u16>, String> {
        let value = line.value_of(key).map(|value| read_within(value, 0..=1024)).transpose()?;
        Ok(value.map(|value| value as u16))
    };
    let (util_min, util_max) = (bound("util_min")?, bound("util_max")?);
    if util_min.or(util_max).is_none() {
        return Err("clamps needs util_min=N or util_max=N".to_string());
    }
    Ok(GroupAct::Clamps { util_min, util_max })
}

fn quota(line: &mut Line) -> Result<GroupAct, String> {
    let us = |what: &str, span: Duration, least: u64| {
        let us = u32::try_from(span.0 / 1_000).ok().filter(|&us| u64::from(us) >= least);
        us.ok_or_else(|| format!("{what} is {least} us to 4000 s"))
    };
    let quota_us = match line.word()? {
        "none" => 0,
        span => us("a quota", read_duration(span)?, 1_000)?,
    };
    let period: Option<Duration> = line.option("period")?;
    let burst: Option<Duration> = line.option("burst")?;
    let period_us = us("a period", period.unwrap_or(Duration::millis(100)), 1_000)?;
    if period_us > 1_000_000 {
        return Err("a period is at most 1s".to_string());
    }
    Ok(GroupAct::Quota { quota_us, period_us, burst_us: us("a burst", burst.unwrap_or_default(), 0)? })
}

fn access(line: &mut Line, names: &mut Names) -> Result<Op, String> {
    let region = names.known(line.word()?)?;
    let pattern = match line.word()? {
        "sequential" => Pattern::Sequential,
        "random" => Pattern::Random,
        "chase" => Pattern::Chase,
        "chase-sequential" => Pattern::ChaseSequential,
        other => {
            return Err(format!("\"{other}\" is not one of sequential, random, chase, chase-sequential"));
        }
    };
    let read_bytes = line.option("read")?.unwrap_or(0);
    let write_bytes = line.option("write")?.unwrap_or(0);
    let stride = line.option("stride")?.unwrap_or(64);
    let streaming = line.flag("streaming");
    let spec = AccessSpec { region, pattern, read_bytes, write_bytes, stride, streaming };
    Ok(Op::Access { access: names.w.access(spec) })
}

/// A span, fixed or drawn.
pub(super) fn read_dist(word: &str) -> Result<Dist, String> {
    let Some((form, rest)) = word.split_once('(') else { return read_duration(word).map(Dist::Constant) };
    let inner = rest.strip_suffix(')').ok_or_else(|| format!("\"{word}\" lacks its closing bracket"))?;
    if form == "stalls" {
        let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
        let &[usual, stall, one_in] = &parts[..] else {
            return Err(format!("\"{word}\" is not stalls(USUAL,STALL,ONE_IN)"));
        };
        let one_in = one_in.parse().map_err(|_| format!("\"{one_in}\" is no whole number"))?;
        return Ok(Dist::Stalls { usual: read_duration(usual)?, stall: read_duration(stall)?, one_in });
    }
    let spans = inner.split(',').map(|span| read_duration(span.trim())).collect::<Result<Vec<_>, _>>()?;
    match (form, &spans[..]) {
        // A draw that is always zero becomes an op that takes no time.
        ("uniform", &[_, Duration::ZERO])
        | ("exponential", &[Duration::ZERO])
        | ("normal", &[Duration::ZERO, Duration::ZERO])
            if spans[0] == Duration::ZERO =>
        {
            Ok(Dist::Constant(Duration::ZERO))
        }
        ("uniform", &[low, high]) if low <= high => Ok(Dist::Uniform { low, high }),
        ("uniform", &[low, high]) => {
            Err(format!("\"{word}\" has its bounds reversed; write uniform({high},{low})"))
        }
        ("exponential", &[mean]) => Ok(Dist::Exponential { mean }),
        ("normal", &[mean, sd]) => Ok(Dist::Normal { mean, sd }),
        _ => Err(format!(
            "\"{word}\" is not one of uniform(LOW,HIGH), exponential(MEAN), normal(MEAN,SD), stalls(USUAL,STALL,ONE_IN)"
        )),
    }
}

fn sched(line: &mut Line) -> Result<SchedAttr, String> {
    let policy = line.word()?;
    let mut keys = SchedWords::default();
    while let Some(word) = line.words.get(line.next) {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("\"{word}\" is not KEY=VALUE"))?;
        line.next += 1;
        keys.set(key, value)?;
    }
    keys.attr(policy)
}

/// Scheduling keys as words; the same in ops and on tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct SchedWords {
    nice: Option<i8>,
    priority: Option<u8>,
    slice: Option<Duration>,
    util_min: Option<u16>,
    util_max: Option<u16>,
    runtime: Option<Duration>,
    deadline: Option<Duration>,
    period: Option<Duration>,
}

impl SchedWords {
    pub const KEYS: &[&str] =
        &["nice", "priority", "slice", "util_min", "util_max", "runtime", "deadline", "period"];

    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "nice" => self.nice = Some(read_within(value, -20..=19)? as i8),
            "priority" => self.priority = Some(read_within(value, 1..=99)? as u8),
            "slice" => self.slice = Some(read_word(value)?),
            "util_min" => self.util_min = Some(read_within(value, 0..=1024)? as u16),
            "util_max" => self.util_max = Some(read_within(value, 0..=1024)? as u16),
            "runtime" => self.runtime = Some(read_word(value)?),
            "deadline" => self.deadline = Some(read_word(value)?),
            "period" => self.period = Some(read_word(value)?),
            _ => return Err(format!("\"{key}\" is none of {}", SchedWords::KEYS.join(", "))),
        }
        Ok(())
    }

    /// The attributes of a policy with these keys, each of which must fit it.
    pub fn attr(&self, policy: &str) -> Result<SchedAttr, String> {
        let is_fair = matches!(policy, "other" | "batch" | "idle");
        let is_rt = matches!(policy, "fifo" | "rr");
        let is_deadline = policy == "deadline";
        let deadline_keys = self.runtime.or(self.deadline).or(self.period).is_some();
        for (is_set, fits, key) in [
            (self.nice.is_some(), is_fair, "nice"),
            (self.slice.is_some(), is_fair, "slice"),
            (self.priority.is_some(), is_rt, "priority"),
            (deadline_keys, is_deadline, "runtime, deadline or period"),
        ] {
            if is_set && !fits {
                return Err(format!("{key} has no meaning for policy \"{policy}\""));
            }
        }
        let nice = self.nice.unwrap_or(0);
        let priority = self.priority.unwrap_or(1);
        let policy = match policy {
            "other" => Policy::Normal { nice },
            "batch" => Policy::Batch { nice },
            "idle" => Policy::Idle { nice },
            "fifo" => Policy::Fifo { priority },
            "rr" => Policy::Rr { priority },
            "deadline" => {
                let runtime = self.runtime.ok_or_else(|| "policy deadline needs a runtime".to_string())?;
                let period = self.period.or(self.deadline).unwrap_or(runtime);
                Policy::Deadline(Deadline { runtime, deadline: self.deadline.unwrap_or(period), period })
            }
            other => return Err(format!("\"{other}\" is not one of other, batch, idle, fifo, rr, deadline")),
        };
        let attr = SchedAttr { policy, slice: self.slice, util_min: self.util_min, util_max: self.util_max };
        // Each key was checked when it was read; this checks whether they fit each other.
        attr_is_valid(&attr).map_err(|fault| fault.to_string())?;
        Ok(attr)
    }
}
