//! Twenty random cases with a known culprit: one, two together, none; with noise that seeds share, and decoys.

use schedlab_stats::Rng;

use super::*;

/// A kernel of 30 parts with a random figure.
struct Drawn {
    /// Sets that have an effect if all their parts are present.
    causes: Vec<(Vec<usize>, f64)>,
    /// Parts that change something, but not the figure.
    decoys: Vec<usize>,
    noise: f64,
}

impl Probe for Drawn {
    fn measure(&mut self, kernel: &[usize], seed: u64) -> Result<(f64, String), Error> {
        let uniform = |name: &str| (Rng::new(seed, name).bits() >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
        // The seed's own noise, which cancels in pairs, and the kernel's own noise if any part changed.
        let has = |part: &usize| kernel.contains(part);
        let seen: Vec<usize> = kernel
            .iter()
            .copied()
            .filter(|part| {
                self.decoys.contains(part) || self.causes.iter().any(|(set, _)| set.contains(part))
            })
            .collect();
        let own = if seen.is_empty() { 0.0 } else { uniform(&format!("{seen:?}")) };
        let effect: f64 = self.causes.iter().filter(|(set, _)| set.iter().all(has)).map(|(_, by)| by).sum();
        let figure = 100.0 + 20.0 * uniform("seed") + 100.0 * self.noise * own + 100.0 * effect;
        Ok((figure, format!("{figure:?} {seen:?}")))
    }
}

const PARTS: usize = 30;

fn find(causes: &[(&[usize], f64)], decoys: &[usize], noise: f64) -> Answer {
    let causes = causes.iter().map(|(set, by)| (set.to_vec(), *by)).collect();
    let mut drawn = Drawn { causes, decoys: decoys.to_vec(), noise };
    bisect(&mut drawn, PARTS, Options::default()).unwrap()
}

fn names(answer: &Answer, role: Role) -> Vec<usize> {
    let mut parts: Vec<usize> =
        answer.culprits.iter().filter(|c| c.role == role && c.confirmed).map(|c| c.part).collect();
    parts.sort_unstable();
    parts
}

#[test]
fn twenty_drawn_cases_are_found() {
    let mut rng = Rng::new(42, "cases");
    for case in 0..20 {
        let mut parts: Vec<usize> = (0..PARTS).collect();
        for at in 0..8 {
            parts.swap(at, at + rng.below(PARTS - at));
        }
        let sign = if rng.below(2) == 0 { 1.0 } else { -1.0 };
        let by = sign * (0.10 + rng.below(20) as f64 / 100.0);
        let decoys = &parts[2..8];
        let mut pair = parts[..2].to_vec();
        pair.sort_unstable();
        match case % 5 {
            0..=1 => {
                let answer = find(&[(&parts[..1], by)], decoys, 0.03);
                assert_eq!(names(&answer, Role::Alone), &parts[..1], "case {case}: {answer:?}");
                assert_eq!(answer.culprits.len(), 1, "case {case}: {answer:?}");
            }
            2..=3 => {
                let answer = find(&[(&pair, by)], decoys, 0.03);
                assert_eq!(names(&answer, Role::Together), pair, "case {case}: {answer:?}");
                assert_eq!(answer.culprits.len(), 2, "case {case}: {answer:?}");
                assert_eq!(answer.culprits[0].with, [answer.culprits[1].part]);
            }
            _ => {
                let answer = find(&[], decoys, 0.03);
                assert!(answer.culprits.is_empty(), "case {case}: {answer:?}");
            }
        }
    }
}

#[test]
fn several_and_beside_are_answers_too() {
    // Each of two is half of it.
    let answer = find(&[(&[4], 0.2), (&[9], 0.2)], &[1, 2], 0.02);
    assert_eq!(names(&answer, Role::Alone), [4, 9], "{answer:?}");
    // A third, much smaller, is reported, and is not the cause.
    let answer = find(&[(&[4], 0.4), (&[9], 0.08)], &[1, 2], 0.01);
    assert_eq!((names(&answer, Role::Alone), names(&answer, Role::Beside)), (vec![4], vec![9]), "{answer:?}");
    // A part that cancels another: the kernels do not differ, so there is nothing to find.
    let answer = find(&[(&[4], 0.3), (&[9], -0.3)], &[1], 0.01);
    assert!(answer.culprits.is_empty() && !answer.whole.is_real(), "{answer:?}");
}

#[test]
fn noise_names_nobody_more_often_than_the_rate() {
    let mut named = 0;
    for case in 0..40 {
        let decoys: Vec<usize> = (0..10).map(|nth| (nth * 3 + case) % PARTS).collect();
        let mut drawn = Drawn { causes: Vec::new(), decoys, noise: 0.1 };
        let options = Options { first_seed: case as u64 * 1000, ..Options::default() };
        let answer = bisect(&mut drawn, PARTS, options).unwrap();
        named += usize::from(answer.culprits.iter().any(|culprit| culprit.confirmed));
    }
    // 5 % of 40 are 2; 6 would be a chance of 1 in 70.
    assert!(named <= 5, "{named} of 40");
}
