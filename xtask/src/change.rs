//! Changes of a figure between runs with and without a setting, recorded and predicted.

use schedlab_stats::{Direction, Moments, Summary, t_quantile, welch};

/// A change stands out if the differences between rounds make it this improbable without a cause...
const LEVEL: f64 = 0.01;
/// ... and at least this large, as a part of the figure it changes.
const LEAST: f64 = 0.2;
/// With fewer events than this, the relative change is not judged.
const HANDFUL: f64 = 20.0;

/// How one figure changes with a setting.
pub struct Change {
    before: f64,
    after: f64,
    /// How improbable it is without a cause.
    p: f64,
    /// The uncertainty of its relative size, in either direction.
    open: f64,
}

impl Change {
    /// Between runs without a setting and with it.
    pub fn of(plain: &[f64], with: &[f64]) -> Change {
        let mean = |values: &[f64]| values.iter().copied().collect::<Moments>().mean();
        let summary = |values: &[f64]| Summary::new(values.iter().copied(), Direction::Lower);
        let (before, after) = (mean(plain), mean(with));
        let errors = [plain, with].map(|values| values.iter().copied().collect::<Moments>().stderr().powi(2));
        // Using the degrees of freedom of the smaller group is conservative.
        let t = t_quantile(1.0 - LEVEL / 2.0, (plain.len().min(with.len()) - 1) as f64);
        let open = t * errors.iter().sum::<f64>().sqrt() / before.max(HANDFUL);
        Change { before, after, p: welch(&summary(plain), &summary(with)), open }
    }

    /// Relative to the original value, which counts as at least a handful.
    pub fn part(&self) -> f64 {
        (self.after - self.before) / self.before.max(HANDFUL)
    }

    /// Whether its rounds exclude that it is as large as another.
    pub fn rules_out(&self, other: &Change) -> bool {
        (self.part() - other.part()).abs() > self.open
    }

    /// It is larger than the differences between rounds explain.
    pub fn stands_out(&self) -> bool {
        self.p < LEVEL && self.part().abs() >= LEAST
    }

    pub fn cell(&self) -> String {
        let star = if self.stands_out() { "*" } else { "" };
        format!("{:.0} -> {:.0} ({:+.0} %{star})", self.before, self.after, self.part() * 100.0)
    }
}

/// How predicted changes compare with recorded ones.
#[derive(Default)]
pub struct Tally {
    /// Recorded ones that stand out; simulated ones with the same sign; those that stand out as well; those within a factor of two.
    recorded: usize,
    sign: usize,
    told: usize,
    near: usize,
    /// Simulated ones that stand out where the recorded one does not, and the total; those that the recorded rounds
    /// rule out.
    alone: usize,
    wrong: usize,
    quiet: usize,
}

impl Tally {
    pub fn add(&mut self, recorded: &Change, simulated: &Change) {
        if !recorded.stands_out() {
            self.quiet += 1;
            let alone = simulated.stands_out();
            self.alone += usize::from(alone);
            self.wrong += usize::from(alone && recorded.rules_out(simulated));
            return;
        }
        let (said, ours) = (recorded.part(), simulated.part());
        let same = said.signum() == ours.signum();
        self.recorded += 1;
        self.sign += usize::from(same);
        self.told += usize::from(same && simulated.stands_out());
        // Halving and doubling count as equally large.
        let ratio = |change: &Change| (change.after.max(1.0) / change.before.max(1.0)).ln();
        let of = ratio(simulated) / ratio(recorded);
        self.near += usize::from(same && (0.5..=2.0).contains(&of));
    }

    pub fn row(&self, how: &str, load: &str) -> String {
        let Tally { recorded, sign, told, near, alone, wrong, quiet } = self;
        format!("| {how} | {load} | {recorded} | {sign} | {told} | {near} | {alone} of {quiet} | {wrong} |\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_stands_out_if_rounds_differ_less() {
        let plain = [100.0, 102.0, 98.0];
        let change = |with: [f64; 3]| Change::of(&plain, &with);
        assert!(change([150.0, 151.0, 149.0]).stands_out());
        assert!(!change([90.0, 300.0, 60.0]).stands_out(), "rounds differ as much");
        assert!(!change([110.0, 110.5, 109.5]).stands_out(), "too small to ask about");
        assert_eq!(change([150.0, 151.0, 149.0]).cell(), "100 -> 150 (+50 %*)");
        let few = Change::of(&[0.0, 0.1, 0.0], &[2.0, 2.1, 2.0]);
        assert!(!few.stands_out(), "a handful");
    }

    #[test]
    fn simulated_changes_are_reported_by_sign_and_size() {
        let change = |before, after, p| Change { before, after, p, open: 0.4 };
        let mut tally = Tally::default();
        let recorded = change(100.0, 200.0, 0.0);
        tally.add(&recorded, &change(50.0, 100.0, 0.0));
        tally.add(&recorded, &change(100.0, 800.0, 0.0));
        tally.add(&recorded, &change(100.0, 110.0, 0.0));
        tally.add(&recorded, &change(100.0, 50.0, 0.0));
        tally.add(&change(100.0, 101.0, 0.5), &change(100.0, 150.0, 0.0));
        tally.add(&change(100.0, 101.0, 0.5), &change(100.0, 130.0, 0.0));
        tally.add(&change(100.0, 101.0, 0.5), &change(100.0, 102.0, 0.5));
        assert_eq!(tally.row("x", "y"), "| x | y | 4 | 3 | 2 | 1 | 2 of 3 | 1 |\n");
    }
}
