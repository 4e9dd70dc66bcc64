//! Parameters of models, by name, as a scenario file may set them.
//!
//! [`params!`] declares a model's struct with a default and a sentence for each
//! field, and from the same lines the means to set a field by its name.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::CpuList;

/// A value as a file gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue {
    /// A whole number.
    Int(i64),
    /// true or false.
    Bool(bool),
    /// Text: names, spans like `5ms`, sizes like `64M`, lists of CPUs.
    Text(String),
}

/// A parameter of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: String,
    /// Its value now, as text.
    pub value: String,
}

/// A type that a parameter can have.
pub trait Param: Sized {
    /// Takes a value from a file.
    ///
    /// # Errors
    /// What is expected instead.
    fn read(value: &ParamValue) -> Result<Self, String>;

    /// The value as a file would give it.
    fn show(&self) -> String;
}

impl ParamValue {
    fn expected(&self, what: &str) -> String {
        match self {
            ParamValue::Int(n) => format!("{what} is expected, not {n}"),
            ParamValue::Bool(b) => format!("{what} is expected, not {b}"),
            ParamValue::Text(text) => format!("{what} is expected, not \"{text}\""),
        }
    }
}

macro_rules! whole_numbers {
    ($($type:ty),*) => {$(
        impl Param for $type {
            fn read(value: &ParamValue) -> Result<$type, String> {
                let range = format!("a whole number from {} to {}", <$type>::MIN, <$type>::MAX);
                match value {
                    ParamValue::Int(n) => <$type>::try_from(*n).map_err(|_| value.expected(&range)),
                    _ => Err(value.expected(&range)),
                }
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

whole_numbers!(i8, u8, u16, u32);

impl Param for bool {
    fn read(value: &ParamValue) -> Result<bool, String> {
        match value {
            ParamValue::Bool(b) => Ok(*b),
            _ => Err(value.expected("true or false")),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// A count of bytes or elements: a number, or text with K, M or G for powers of 1024.
impl Param for u64 {
    fn read(value: &ParamValue) -> Result<u64, String> {
        let what = "a whole number, or one with K, M or G behind it,";
        match value {
            ParamValue::Int(n) => u64::try_from(*n).map_err(|_| value.expected(what)),
            ParamValue::Text(text) => read_size(text).ok_or_else(|| value.expected(what)),
            ParamValue::Bool(_) => Err(value.expected(what)),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

fn read_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

impl Param for Duration {
    fn read(value: &ParamValue) -> Result<Duration, String> {
        match value {
            ParamValue::Int(0) => Ok(Duration::ZERO),
            ParamValue::Text(text) => read_duration(text),
            _ => Err(value.expected("a span like \"5ms\"")),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// Reads a span: digits with or without a fraction, and ns, us, ms or s.
pub(crate) fn read_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("a span like 5ms or 1.5us is expected, not \"{text}\"");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let unit_ns: u64 = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) || fraction.len() > 9 {
        return Err(wrong());
    }
    let scale = 10u64.pow(fraction.len() as u32);
    let fraction: u64 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| wrong())? };
    if (u128::from(fraction) * u128::from(unit_ns)) % u128::from(scale) != 0 {
        return Err(format!("\"{text}\" is not a whole number of nanoseconds"));
    }
    let fraction_ns = (u128::from(fraction) * u128::from(unit_ns) / u128::from(scale)) as u64;
    let ns = whole
        .parse::<u64>()
        .ok()
        .and_then(|w| w.checked_mul(unit_ns))
        .and_then(|ns| ns.checked_add(fraction_ns));
    ns.map(Duration).ok_or_else(|| format!("\"{text}\" is longer than 584 years"))
}

/// A CPU, or none.
impl Param for Option<CpuId> {
    fn read(value: &ParamValue) -> Result<Option<CpuId>, String> {
        match value {
            ParamValue::Int(n @ 0..=4095) => Ok(Some(CpuId(*n as u16))),
            ParamValue::Text(text) if text == "any" => Ok(None),
            _ => Err(value.expected("a CPU's number or \"any\"")),
        }
    }

    fn show(&self) -> String {
        self.map_or("any".to_string(), |cpu| cpu.to_string())
    }
}

/// A set of CPUs, or all.
impl Param for Option<CpuList> {
    fn read(value: &ParamValue) -> Result<Option<CpuList>, String> {
        match value {
            ParamValue::Int(n @ 0..=4095) => Ok(CpuList::new([CpuId(*n as u16)])),
            ParamValue::Text(text) if text == "all" => Ok(None),
            ParamValue::Text(text) => text.parse().map(Some),
            _ => Err(value.expected("a list of CPUs like \"0-3,8\" or \"all\"")),
        }
    }

    fn show(&self) -> String {
        self.as_ref().map_or("all".to_string(), CpuList::to_string)
    }
}

/// Nice values in a row: one number, or text with blanks or commas between them.
impl Param for Vec<i8> {
    fn read(value: &ParamValue) -> Result<Vec<i8>, String> {
        let what = "numbers from -20 to 19 like \"0 0 5 -5\"";
        let nice = |n: i64| i8::try_from(n).ok().filter(|n| (-20..=19).contains(n));
        match value {
            ParamValue::Int(n) => nice(*n).map(|n| vec![n]).ok_or_else(|| value.expected(what)),
            ParamValue::Text(text) => {
                let words = text.split([' ', ',']).filter(|word| !word.is_empty());
                let number = |word: &str| word.parse().ok().and_then(nice);
                words.map(|word| number(word).ok_or_else(|| value.expected(what))).collect()
            }
            ParamValue::Bool(_) => Err(value.expected(what)),
        }
    }

    fn show(&self) -> String {
        self.iter().map(i8::to_string).collect::<Vec<_>>().join(" ")
    }
}

/// Declares an enum whose variants a file names.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
        }

        impl $crate::Param for $name {
            fn read(value: &$crate::ParamValue) -> Result<$name, String> {
                const NAMES: &[&str] = &[$($text),*];
                match value {
                    $($crate::ParamValue::Text(text) if text == $text => Ok($name::$variant),)*
                    _ => Err(format!("one of {} is expected", $crate::error::quoted(NAMES.iter().copied()))),
                }
            }

            fn show(&self) -> String {
                match self {
                    $($name::$variant => $text.to_string(),)*
                }
            }
        }
    };
}

/// Declares a model: its struct, its name, and its parameters with defaults.
macro_rules! params {
    (
        $(#[$doc:meta])*
        $model:ident = $name:literal {
            $($(#[doc = $about:literal])+ $field:ident: $type:ty = $default:expr,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $model {
            $($(#[doc = $about])+ pub $field: $type,)*
        }

        impl Default for $model {
            fn default() -> $model {
                $model { $($field: $default,)* }
            }
        }

        impl $model {
            pub(crate) const NAME: &'static str = $name;

            pub(crate) fn params(&self) -> Vec<$crate::ParamInfo> {
                vec![$($crate::ParamInfo {
                    name: stringify!($field),
                    about: concat!($($about),+).trim().to_string(),
                    value: $crate::Param::show(&self.$field),
                },)*]
            }

            pub(crate) fn set(
                &mut self,
                name: &str,
                value: &$crate::ParamValue,
            ) -> Option<Result<(), String>> {
                match name {
                    $(stringify!($field) => Some($crate::Param::read(value).map(|read| self.$field = read)),)*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use {choice, params};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_exact() {
        let ok = |text: &str| read_duration(text).unwrap().0;
        assert_eq!(
            [ok("0"), ok("7ns"), ok("1.5us"), ok("1.94ms"), ok("2s")],
            [0, 7, 1_500, 1_940_000, 2_000_000_000]
        );
        for text in ["5", "ms", "-1ms", "1.5ns", "1 ms", "1h", "1e3us", "99999999999s"] {
            assert!(read_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_are_read_and_shown_alike() {
        fn same<T: Param + PartialEq + core::fmt::Debug>(value: ParamValue, shown: &str) {
            let read = T::read(&value).unwrap();
            assert_eq!(read.show(), shown);
        }
        let text = |text: &str| ParamValue::Text(text.to_string());
        same::<u64>(text("64M"), "67108864");
        same::<Duration>(text("1500us"), "1500us");
        same::<Option<CpuList>>(text("0,2-3"), "0,2-3");
        same::<Option<CpuList>>(text("all"), "all");
        same::<Option<CpuId>>(ParamValue::Int(16), "16");
        same::<Vec<i8>>(text("0, 0 5 -5"), "0 0 5 -5");
        let error = u32::read(&ParamValue::Int(-1)).unwrap_err();
        assert_eq!(error, "a whole number from 0 to 4294967295 is expected, not -1");
    }
}
