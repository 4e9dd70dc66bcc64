//! How close a simulated figure must be to a published one.
//!
//! Written as parts separated by blanks, all of which must hold: `15%` (relative error), `8pp` (distance of a
//! change in percentage points), `-16..-4pp` or `20..80%` (within these bounds, either of which may be left
//! out), `x0.5..2` (simulated over published), `sign` (a change in the published direction); for lists of
//! CPUs `first3` (the same at the start), `counts` (each CPU equally often) and `set` (the same CPUs). `-` is
//! no condition.

use std::fmt;

use super::figure::Figure;

/// A tolerance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tolerance {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Relative(f64),
    Points(f64),
    Within(f64, f64),
    Ratio(f64, f64),
    Sign,
    First(usize),
    Counts,
    Set,
}

impl Tolerance {
    /// Reads it.
    ///
    /// # Errors
    /// The part that cannot be parsed.
    pub fn parse(text: &str) -> Result<Tolerance, String> {
        let words = text.split_whitespace().filter(|word| *word != "-");
        let parts = words.map(part).collect::<Result<Vec<_>, _>>()?;
        Ok(Tolerance { text: text.split_whitespace().collect::<Vec<_>>().join(" "), parts })
    }

    /// Whether a simulated figure is inside; `None` if there is no condition or it cannot be judged. `sign`
    /// is whether the direction is right, if there is one.
    pub fn judge(
        &self,
        published: Option<&Figure>,
        simulated: Option<&Figure>,
        sign: Option<bool>,
    ) -> Option<bool> {
        if self.parts.is_empty() {
            return None;
        }
        let Some(simulated) = simulated else { return Some(false) };
        Some(self.parts.iter().all(|part| holds(*part, published, simulated, sign)))
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn part(word: &str) -> Result<Part, String> {
    let bad = || {
        let forms = "15%, 8pp, -16..-4pp, 20..80%, x0.5..2, sign, first3, counts, set";
        format!("\"{word}\" is not a tolerance; write {forms} or -")
    };
    let number = |text: &str| text.parse::<f64>().map_err(|_| bad());
    let bounds = |text: &str| -> Result<(f64, f64), String> {
        let (low, high) = text.split_once("..").ok_or_else(bad)?;
        let end = |text: &str, open: f64| if text.is_empty() { Ok(open) } else { number(text) };
        Ok((end(low, f64::NEG_INFINITY)?, end(high, f64::INFINITY)?))
    };
    match word {
        "sign" => return Ok(Part::Sign),
        "counts" => return Ok(Part::Counts),
        "set" => return Ok(Part::Set),
        _ => {}
    }
    if let Some(count) = word.strip_prefix("first") {
        return count.parse().map(Part::First).map_err(|_| bad());
    }
    if let Some(ratio) = word.strip_prefix('x') {
        return bounds(ratio).map(|(low, high)| Part::Ratio(low, high));
    }
    if word.contains("..") {
        return bounds(word.trim_end_matches("pp").trim_end_matches('%')).map(|(l, h)| Part::Within(l, h));
    }
    if let Some(points) = word.strip_suffix("pp") {
        return number(points).map(Part::Points);
    }
    word.strip_suffix('%').map_or_else(|| Err(bad()), |percent| number(percent).map(Part::Relative))
}

fn holds(part: Part, published: Option<&Figure>, simulated: &Figure, sign: Option<bool>) -> bool {
    match (published, simulated) {
        (_, Figure::Number(found)) if matches!(part, Part::Within(..)) => {
            let Part::Within(low, high) = part else { unreachable!() };
            (low..=high).contains(found)
        }
        (Some(Figure::Number(given)), Figure::Number(found)) => match part {
            Part::Relative(percent) => (found / given - 1.0).abs() * 100.0 <= percent,
            Part::Points(points) => (found - given).abs() <= points,
            Part::Ratio(low, high) => (low..=high).contains(&(found / given)),
            Part::Sign => sign != Some(false),
            _ => false,
        },
        (Some(Figure::Cpus(given)), Figure::Cpus(found)) => match part {
            Part::First(n) => given.iter().take(n).eq(found.iter().take(n)),
            Part::Counts => sorted(given) == sorted(found),
            Part::Set => {
                let (mut given, mut found) = (sorted(given), sorted(found));
                given.dedup();
                found.dedup();
                given == found
            }
            _ => false,
        },
        _ => false,
    }
}

fn sorted(cpus: &[u16]) -> Vec<u16> {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_holds_what_it_says() {
        let n = Figure::Number;
        for (text, published, simulated, inside) in [
            ("15%", 100.0, 114.0, true),
            ("15%", 100.0, 84.0, false),
            ("8pp", -48.5, -41.0, true),
            ("8pp", -48.5, -40.0, false),
            ("-16..-4pp", -9.2, -14.4, true),
            ("-16..-4pp", -9.2, -27.0, false),
            ("0..", 3.0, 1.0, true),
            ("0..", 3.0, -1.0, false),
            ("x0.5..2", 100.0, 199.0, true),
            ("x0.5..2", 100.0, 201.0, false),
        ] {
            let judged =
                Tolerance::parse(text).unwrap().judge(Some(&n(published)), Some(&n(simulated)), None);
            assert_eq!(judged, Some(inside), "{text}: {simulated} for {published}");
        }
    }

    #[test]
    fn all_parts_must_hold() {
        let judge = |sign| {
            let tolerance = Tolerance::parse("20% sign").unwrap();
            tolerance.judge(Some(&Figure::Number(10.0)), Some(&Figure::Number(11.0)), sign)
        };
        assert_eq!(
            [judge(Some(true)), judge(Some(false)), judge(None)],
            [Some(true), Some(false), Some(true)]
        );
    }

    #[test]
    fn lists_of_cpus_compare_in_order_or_without() {
        let list = |cpus: &[u16]| Figure::Cpus(cpus.to_vec());
        for (text, simulated, inside) in [
            ("first3 counts", list(&[32, 48, 0, 16, 16]), true),
            ("first3 counts", list(&[32, 48, 16, 0, 16]), false),
            ("first3 set", list(&[32, 48, 0, 16]), true),
            ("counts", list(&[32, 48, 0, 16]), false),
        ] {
            let published = list(&[32, 48, 0, 16, 16]);
            let judged = Tolerance::parse(text).unwrap().judge(Some(&published), Some(&simulated), None);
            assert_eq!(judged, Some(inside), "{text}: {simulated:?}");
        }
    }

    #[test]
    fn what_is_no_tolerance_is_refused() {
        for text in ["15", "about 3%", "x2", "firstx"] {
            assert!(Tolerance::parse(text).is_err(), "{text}");
        }
        assert_eq!(Tolerance::parse("-").unwrap().judge(None, None, None), None);
    }
}
