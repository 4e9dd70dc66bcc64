//! JSON lines, written and read back.

mod common;

use expect_test::expect;
use proptest::prelude::*;
use schedlab_trace::read::{Record, ftrace, jsonl};
use schedlab_trace::write::Jsonl;
use schedlab_trace::{Event, Sink};

fn write<'a>(events: impl IntoIterator<Item = &'a Event>) -> String {
    let mut writer = Jsonl::new(Vec::new());
    events.into_iter().for_each(|event| writer.event(event));
    String::from_utf8(writer.finish().expect("memory can be written")).expect("text")
}

fn read(text: &str) -> Vec<Record> {
    jsonl::Reader::new(text.as_bytes()).map(|record| record.expect("memory can be read")).collect()
}

fn from_text(text: &str) -> Vec<Event> {
    ftrace::Reader::new(text.as_bytes())
        .map(|record| match record.unwrap() {
            Record::Event(event) => event,
            other => panic!("{other:?}"),
        })
        .collect()
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(trace in common::trace()) {
        let text = write(&trace);
        let expected: Vec<Record> = trace.into_iter().map(Record::Event).collect();
        prop_assert_eq!(read(&text), expected, "{}", text);
    }
}

#[test]
fn the_keys_are_stable() {
    let events = from_text(
        "\
        \x20           make-812     (    810) [000] d..2.     4.796689012: sched_waking: comm=c\"1 pid=813 prio=120 target_cpu=003\n\
        make-812 [000] 5.0: sched_switch: prev_comm=make prev_pid=812 prev_prio=120 prev_state=R+ ==> next_comm=cc1 next_pid=813 next_prio=120\n\
        make-812 [000] 6.0: schedlab_placement: pid=813 how=fork prev_cpu=0 target=1 cpu=5 remote=1 reason=IDLEST numbers=a:1,b:-2 examined=3:BUSY,5\n\
        make-812 [000] 7.0: schedlab_balance: dst_cpu=0 idle=busy domain=MC local=0-3 reason=BALANCED migration=load imbalance=-1 moved=7,8\n\
        make-812 [000] 8.0: sched_process_exit: comm=make pid=812 prio=120 group_dead=true\n\
        make-812 [000] 9.0: tracing_mark_write: C|812|ops|77\n\
        make-812 [000] 9.5: probe: (f+0x1) a=1\n",
    );
    expect![[r#"
        {"time":4796689012,"cpu":0,"pid":812,"tgid":810,"comm":"make","flags":"d..2.","event":"sched_waking","fields":{"comm":"c\"1","pid":813,"prio":120,"target_cpu":3}}
        {"time":5000000000,"cpu":0,"pid":812,"comm":"make","event":"sched_switch","fields":{"prev_comm":"make","prev_pid":812,"prev_prio":120,"prev_state":"R+","next_comm":"cc1","next_pid":813,"next_prio":120}}
        {"time":6000000000,"cpu":0,"pid":812,"comm":"make","event":"schedlab_placement","fields":{"pid":813,"how":"fork","prev_cpu":0,"target":1,"cpu":5,"remote":true,"reason":"IDLEST","numbers":{"a":1,"b":-2},"examined":[{"cpu":3,"refused":"BUSY"},{"cpu":5}]}}
        {"time":7000000000,"cpu":0,"pid":812,"comm":"make","event":"schedlab_balance","fields":{"dst_cpu":0,"idle":"busy","domain":"MC","local":"0-3","reason":"BALANCED","migration":"load","imbalance":-1,"moved":[7,8]}}
        {"time":8000000000,"cpu":0,"pid":812,"comm":"make","event":"sched_process_exit","fields":{"comm":"make","pid":812,"prio":120,"group_dead":true}}
        {"time":9000000000,"cpu":0,"pid":812,"comm":"make","event":"tracing_mark_write","fields":{"label":"ops","value":77}}
        {"time":9500000000,"cpu":0,"pid":812,"comm":"make","event":"probe","fields":{"text":"(f+0x1) a=1"}}
    "#]].assert_eq(&write(&events));
}

#[test]
fn a_line_that_is_no_event_is_a_gap() {
    let found: Vec<String> = read(
        "[]\n\
        \n\
        {\"time\":1\n\
        {\"time\":1,\"cpu\":0,\"pid\":1,\"event\":\"cpu_idle\",\"fields\":{\"state\":1}}\n\
        {\"time\":1,\"cpu\":0,\"pid\":1,\"event\":\"cpu_idle\",\"fields\":{\"state\":1,\"cpu\":0}}\n\
        {\"time\":-1,\"cpu\":0,\"pid\":1,\"event\":\"cpu_idle\",\"fields\":{\"state\":1,\"cpu\":0}}\n",
    )
    .iter()
    .map(|record| match record {
        Record::Event(event) => format!("{} {}", event.time, event.kind.name()),
        Record::Gap(gap) => gap.to_string(),
        Record::Lost(lost) => lost.to_string(),
    })
    .collect();
    expect![[r#"
        line 1: no name under `event`
        line 3: not a JSON object: EOF while parsing an object at line 1 column 9
        line 4: `fields` does not hold what the event needs
        0.000000001 cpu_idle
        line 6: no nanoseconds under `time`"#]]
    .assert_eq(&found.join("\n"));
}
