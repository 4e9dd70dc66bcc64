//! One parameter and the values it takes: `workload.groups=1,2,4..64:x2`.

use crate::error::Error;
use crate::value::Value;

/// Maximum number of values of one item.
const VALUES_MAX: usize = 100_000;

/// A parameter that a plan varies.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Path of the parameter: `machine`, `machine.cost.syscall_ns`, `kernel`, `kernel.base_slice_ns`, `row`, `seed`,
    /// `limit`, or a place in the scenario, `workload.groups`.
    pub path: String,
    /// Its possible values.
    pub spread: Spread,
}

/// The possible values of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Spread {
    /// One of these.
    List(Vec<Value>),
    /// Anything between two bounds, for sampled plans; only whole numbers if both bounds are whole.
    Between {
        /// Least value.
        low: f64,
        /// Greatest value.
        high: f64,
        /// Only whole numbers.
        whole: bool,
        /// Sampled logarithmically.
        log: bool,
    },
}

impl Axis {
    /// Reads `path=values`.
    ///
    /// # Errors
    /// What is wrong with it and what is valid.
    pub fn parse(text: &str) -> Result<Axis, Error> {
        let Some((path, values)) = text.split_once('=') else {
            return Err(Error::new(format!(
                "\"{text}\" names no values; write PATH=VALUES, as in workload.groups=1,2,4..64:x2"
            )));
        };
        Axis::of(path.trim(), values)
    }

    /// Reads the values of a path.
    ///
    /// # Errors
    /// As [`Axis::parse`].
    pub fn of(path: &str, values: &str) -> Result<Axis, Error> {
        let wrong = |what: String| Error::new(format!("{path}={values}: {what}"));
        if path.is_empty() {
            return Err(wrong("the name of a parameter is missing before \"=\"".into()));
        }
        let items: Vec<&str> = split(values);
        if let [item] = items[..]
            && let Some(range) = Range::read(item)
            && range.step.is_none()
        {
            return range.between(item).map(|spread| Axis { path: path.into(), spread }).map_err(wrong);
        }
        let mut list = Vec::new();
        for item in items {
            if item.is_empty() {
                return Err(wrong("there is nothing between two commas".into()));
            }
            match Range::read(item) {
                Some(range) => list.extend(range.values(item).map_err(wrong)?),
                None => list.push(Value::read(item)),
            }
        }
        for (index, value) in list.iter().enumerate() {
            if list[..index].contains(value) && list.len() < 1000 {
                return Err(wrong(format!("{value} is there twice")));
            }
        }
        Ok(Axis { path: path.into(), spread: Spread::List(list) })
    }

    /// All values in order, for a grid.
    ///
    /// # Errors
    /// A range of real numbers without a step, or with too many values.
    pub fn grid(&self) -> Result<Vec<Value>, Error> {
        match &self.spread {
            Spread::List(values) => Ok(values.clone()),
            Spread::Between { low, high, whole: true, log: false } if high - low < 1e4 => {
                Ok((*low as i64..=*high as i64).map(Value::Int).collect())
            }
            Spread::Between { low, high, .. } => Err(Error::new(format!(
                "{}: a grid cannot take all values from {low} to {high}; give a step, as in {low}..{high}:+{}, or draw \
                 with --sample latin:100",
                self.path,
                (high - low) / 10.0
            ))),
        }
    }
}

/// Splits at commas, but not inside quotes.
fn split(values: &str) -> Vec<&str> {
    let mut quoted = false;
    let apart = |c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    };
    values.split(apart).map(str::trim).collect()
}

/// `4..64`, followed by `:x2`, `:+8`, `:log` or nothing.
struct Range<'a> {
    low: f64,
    high: f64,
    whole: bool,
    unit: &'a str,
    step: Option<Step>,
    log: bool,
}

enum Step {
    Times(f64),
    Plus(f64),
    Unknown,
}

impl Range<'_> {
    fn read(item: &str) -> Option<Range<'_>> {
        let (bounds, step) = item.split_once(':').map_or((item, None), |(b, s)| (b, Some(s)));
        let (low, high) = bounds.split_once("..")?;
        let ((low, low_unit), (high, unit)) = (number(low)?, number(high)?);
        if low_unit != unit && !low_unit.is_empty() {
            return None;
        }
        let whole = [low, high].iter().all(|n| n.fract() == 0.0) && !bounds.replace("..", "").contains('.');
        let log = step == Some("log");
        let factor = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite());
        let step = step.filter(|_| !log).map(|step| {
            let times = step.strip_prefix('x').and_then(factor).map(Step::Times);
            times.or(step.strip_prefix('+').and_then(factor).map(Step::Plus)).unwrap_or(Step::Unknown)
        });
        Some(Range { low, high, whole, unit, step, log })
    }

    fn between(&self, item: &str) -> Result<Spread, String> {
        self.check(item)?;
        if !self.unit.is_empty() {
            return Err(format!("give {item} a step, as in {item}:x2"));
        }
        if self.log && self.low <= 0.0 {
            return Err(format!("{item}: a logarithmic range must begin above 0"));
        }
        Ok(Spread::Between { low: self.low, high: self.high, whole: self.whole, log: self.log })
    }

    fn check(&self, item: &str) -> Result<(), String> {
        if self.low > self.high {
            return Err(format!("{item} runs backwards; the smaller number comes first"));
        }
        Ok(())
    }

    fn values(&self, item: &str) -> Result<Vec<Value>, String> {
        self.check(item)?;
        let next: Box<dyn Fn(f64) -> f64> = match self.step {
            Some(Step::Times(by)) if by > 1.0 && self.low > 0.0 => Box::new(move |at| at * by),
            Some(Step::Times(_)) => {
                return Err(format!("{item}: a factor must be above 1, and the range above 0"));
            }
            Some(Step::Plus(by)) if by > 0.0 => Box::new(move |at| at + by),
            Some(Step::Plus(_)) => return Err(format!("{item}: a step must be above 0")),
            Some(Step::Unknown) => return Err(format!("{item}: a step is written :x2 or :+8")),
            None => return Err(format!("{item}: beside other values a range needs a step, :x2 or :+8")),
        };
        let whole =
            self.whole && !matches!(self.step, Some(Step::Times(by) | Step::Plus(by)) if by.fract() != 0.0);
        let mut values = Vec::new();
        // A bound that rounding barely misses is still included.
        let end = self.high + self.high.abs() * 1e-12;
        let mut at = self.low;
        while at <= end {
            if values.len() == VALUES_MAX {
                return Err(format!("{item} stands for more than {VALUES_MAX} values"));
            }
            values.push(match (self.unit, whole) {
                ("", true) => Value::Int(at as i64),
                ("", false) => Value::Float(tidy(at)),
                (unit, true) => Value::Text(format!("{}{unit}", at as i64)),
                (unit, false) => Value::Text(format!("{}{unit}", tidy(at))),
            });
            at = next(at);
        }
        Ok(values)
    }
}

/// Removes the last digits, which are rounding errors of adding a step.
fn tidy(number: f64) -> f64 {
    format!("{number:.12e}").parse().unwrap_or(number)
}

/// A number and its suffix: `250us`.
fn number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return None;
    }
    digits.parse().ok().map(|number| (number, &text[digits.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn grid(text: &str) -> String {
        let values = Axis::parse(text).unwrap().grid().unwrap();
        values.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn values_and_ranges() {
        for (text, values) in [
            ("a=1,2,4..64:x2", "Int(1) Int(2) Int(4) Int(8) Int(16) Int(32) Int(64)"),
            ("a=1..4", "Int(1) Int(2) Int(3) Int(4)"),
            ("a=0.1..0.3:+0.1", "Float(0.1) Float(0.2) Float(0.3)"),
            ("a=1ms..4ms:x2", r#"Text("1ms") Text("2ms") Text("4ms")"#),
            ("a=-4..4:+4", "Int(-4) Int(0) Int(4)"),
            (r#"cpus="0,16",0-3"#, r#"Text("0,16") Text("0-3")"#),
            ("kernel=v6.1,v6.1+NO_SIS_UTIL", r#"Text("v6.1") Text("v6.1+NO_SIS_UTIL")"#),
            ("a=true,1e3,x", r#"Bool(true) Float(1000.0) Text("x")"#),
        ] {
            assert_eq!(grid(text), values, "{text}");
        }
    }

    #[test]
    fn bad_values_say_how_it_is_written() {
        for (text, says) in [
            ("groups", "PATH=VALUES"),
            ("=4", "missing before"),
            ("a=1,,2", "between two commas"),
            ("a=8..4:x2", "runs backwards"),
            ("a=4..64:2", ":x2 or :+8"),
            ("a=0..64:x2", "above 0"),
            ("a=4..64:x1", "above 1"),
            ("a=4..64:+0", "above 0"),
            ("a=1,4..64", "needs a step"),
            ("a=1,2,1", "twice"),
            ("a=1..1000000000:+1", "more than"),
            ("a=1ms..4ms", "a step"),
        ] {
            let error = Axis::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        let error = Axis::parse("a=0.5..2").unwrap().grid().unwrap_err().to_string();
        assert!(error.contains("--sample latin:100"), "{error}");
    }
}
