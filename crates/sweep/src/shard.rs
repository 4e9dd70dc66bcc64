//! A share of the chunks, for one of several machines that work on the same plan.

use crate::error::Error;

/// Every `of`th chunk, from `nth` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which share, from 0.
    pub nth: u64,
    /// Of how many.
    pub of: u64,
}

impl Shard {
    /// All chunks.
    pub const ALL: Shard = Shard { nth: 0, of: 1 };

    /// Reads `i/N`, `i` from 0; or `/N`, or `N`, if the engine that started this provides the index:
    /// `SLURM_ARRAY_TASK_ID` or `JOB_COMPLETION_INDEX`.
    ///
    /// # Errors
    /// What is valid, or what the environment lacks.
    pub fn parse(text: &str, environment: impl Fn(&str) -> Option<String>) -> Result<Shard, Error> {
        let written = || {
            Error::new(format!(
                "--shard is i/N with i from 0 to N-1, as 3/16, or N alone inside a Slurm array or a Kubernetes Indexed \
                 Job, not \"{text}\""
            ))
        };
        let (nth, of) = text.split_once('/').unwrap_or(("", text));
        let of: u64 = of.trim().parse().map_err(|_| written())?;
        let nth = match nth.trim() {
            "" | "i" => {
                const NAMES: [&str; 2] = ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"];
                let found = NAMES.iter().find_map(|name| Some((name, environment(name)?)));
                let Some((name, value)) = found else {
                    return Err(Error::new(format!(
                        "--shard {text} does not say which share this is, and neither {} is set; write i/N, as 0/{of}",
                        NAMES.join(" nor ")
                    )));
                };
                let wrong = |_| Error::new(format!("{name} is \"{value}\", which is not a number"));
                value.trim().parse().map_err(wrong)?
            }
            nth => nth.parse().map_err(|_| written())?,
        };
        if nth >= of {
            return Err(Error::new(format!(
                "--shard {nth}/{of}: shares are numbered from 0 to {}",
                of.max(1) - 1
            )));
        }
        Ok(Shard { nth, of })
    }

    /// Whether a chunk is in it.
    pub fn has(self, chunk: u64) -> bool {
        chunk % self.of == self.nth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_given_or_found_in_the_environment() {
        let slurm = |name: &str| (name == "SLURM_ARRAY_TASK_ID").then(|| "2".to_owned());
        let k8s = |name: &str| (name == "JOB_COMPLETION_INDEX").then(|| "1".to_owned());
        assert_eq!(Shard::parse("3/4", |_| None), Ok(Shard { nth: 3, of: 4 }));
        assert_eq!(Shard::parse("4", slurm), Ok(Shard { nth: 2, of: 4 }));
        assert_eq!(Shard::parse("i/4", k8s), Ok(Shard { nth: 1, of: 4 }));
        for (text, says) in [("4", "neither SLURM"), ("4/4", "0 to 3"), ("x/4", "i/N"), ("0/0", "numbered")] {
            let error = Shard::parse(text, |_| None).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!(Shard::parse("2", slurm).unwrap_err().to_string().contains("0 to 1"));
    }

    #[test]
    fn every_chunk_is_in_one_share() {
        for chunk in 0..20 {
            assert_eq!((0..3).filter(|&nth| Shard { nth, of: 3 }.has(chunk)).count(), 1);
        }
    }
}
