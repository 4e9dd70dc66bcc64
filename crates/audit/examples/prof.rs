mod recording;
use recording::Recording;
use schedlab_audit::{Audit, Options};
use schedlab_trace::Sink;
use std::path::Path;
fn main() {
    let mut n = 0usize;
    let t = std::time::Instant::now();
    let mut spent = 0.0;
    for folder in std::env::args().skip(1) {
        let recording = recording::read(Path::new(&folder));
        let events = recording.events();
        let Recording { topology, kernel, groups, .. } = recording;
        let s = std::time::Instant::now();
        for _ in 0..3 {
            let mut audit =
                Audit::new(&topology, &kernel, Options { groups: groups.clone(), ..Options::default() });
            for e in &events {
                audit.event(e);
            }
            std::hint::black_box(audit.finish());
            n += events.len();
        }
        spent += s.elapsed().as_secs_f64();
    }
    println!("{} {:.3} M/s {:?}", n, n as f64 / spent / 1e6, t.elapsed());
}
