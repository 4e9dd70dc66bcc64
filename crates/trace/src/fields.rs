//! An event's fields as names and values, for formats that keep them apart.
//!
//! JSON, protobuf and binary records all hold the same fields and differ in how
//! they put a value into bytes. Each of them walks over [`Kind::fields`] to
//! write, and answers a question per field to read.

use std::borrow::Cow;

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::Pid;

use crate::comm::{Comm, Label};
use crate::decision::{Candidate, How, IdleType, Name, Number, Resched};
use crate::event::{Kind, Softirq};
use crate::state::TaskState;

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number with a sign.
    Int(i64),
    /// A number without one.
    Uint(u64),
    /// Yes or no.
    Bool(bool),
    /// Text; of a task's name any bytes.
    Text(Cow<'a, [u8]>),
    /// The state in which a task left its CPU.
    State(TaskState),
    /// Numbers under their names.
    Numbers(Cow<'a, [Number]>),
    /// CPUs that a search looked at.
    Candidates(Cow<'a, [Candidate]>),
    /// Tasks.
    Pids(Cow<'a, [Pid]>),
    /// CPUs.
    Cpus(Cow<'a, CpuMask>),
}

impl<'a> Value<'a> {
    /// Text that is no name of a task.
    pub fn text(text: &'a str) -> Value<'a> {
        Value::Text(Cow::Borrowed(text.as_bytes()))
    }

    /// The number, also of text that shows one. A huge one without sign is a negative one
    /// that lost its sign on the way, as 64-bit fields of binary formats do.
    pub fn int(&self) -> Option<i64> {
        match self {
            Value::Int(n) => Some(*n),
            Value::Uint(n) => Some(*n as i64),
            Value::Bool(yes) => Some(i64::from(*yes)),
            Value::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// The text, with marks for bytes that are none.
    pub fn str(&self) -> Option<Cow<'_, str>> {
        match self {
            Value::Text(text) => Some(String::from_utf8_lossy(text)),
            _ => None,
        }
    }
}

/// A type that fields have.
pub(crate) trait Field: Sized {
    /// The value to write; None when there is nothing to write.
    fn value(&self) -> Option<Value<'_>>;

    /// The field of the value that was read, if there was one.
    fn from_value(value: Option<Value<'_>>) -> Option<Self>;
}

/// Fields that are numbers.
macro_rules! int_fields {
    ($($type:ty: $variant:ident, $get:expr, $make:expr;)+) => {$(
        impl Field for $type {
            fn value(&self) -> Option<Value<'_>> {
                Some(Value::$variant($get(*self).into()))
            }

            fn from_value(value: Option<Value<'_>>) -> Option<$type> {
                value?.int()?.try_into().ok().map($make)
            }
        }
    )+};
}

int_fields! {
    i16: Int, |n: i16| n, |n: i16| n;
    i32: Int, |n: i32| n, |n: i32| n;
    i64: Int, |n: i64| n, |n: i64| n;
    Pid: Int, |pid: Pid| pid.0, Pid;
    CpuId: Uint, |cpu: CpuId| cpu.0, CpuId;
    Softirq: Uint, |vec: Softirq| vec.0, Softirq;
}

impl Field for u32 {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::Uint((*self).into()))
    }

    /// Takes -1 for the largest: an idle state's end is written either way.
    fn from_value(value: Option<Value<'_>>) -> Option<u32> {
        let n = value?.int()?;
        n.try_into().ok().or_else(|| i32::try_from(n).ok().map(|n| n as u32))
    }
}

impl Field for u64 {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::Uint(*self))
    }

    fn from_value(value: Option<Value<'_>>) -> Option<u64> {
        value?.int().map(|n| n as u64)
    }
}

impl Field for bool {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::Bool(*self))
    }

    fn from_value(value: Option<Value<'_>>) -> Option<bool> {
        value?.int().map(|n| n != 0)
    }
}

/// A field that some kernels do not have.
impl<T: Field> Field for Option<T> {
    fn value(&self) -> Option<Value<'_>> {
        self.as_ref().and_then(T::value)
    }

    fn from_value(value: Option<Value<'_>>) -> Option<Option<T>> {
        match value {
            None => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl Field for Comm {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::Text(Cow::Borrowed(self.as_bytes())))
    }

    fn from_value(value: Option<Value<'_>>) -> Option<Comm> {
        match value? {
            Value::Text(text) => Some(Comm::new(&text)),
            _ => None,
        }
    }
}

impl Field for TaskState {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::State(*self))
    }

    fn from_value(value: Option<Value<'_>>) -> Option<TaskState> {
        match value? {
            Value::State(state) => Some(state),
            Value::Text(letters) => TaskState::parse(&letters),
            value => value.int().map(|bits| TaskState::from_bits(bits as u64)),
        }
    }
}

impl Field for Name {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::text(self))
    }

    fn from_value(value: Option<Value<'_>>) -> Option<Name> {
        name(&value?).map(Name::Owned)
    }
}

impl Field for Box<str> {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::text(self))
    }

    fn from_value(value: Option<Value<'_>>) -> Option<Box<str>> {
        name(&value?).map(String::into_boxed_str)
    }
}

/// A name, or the address that stands for it where a format has only that.
fn name(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Uint(address) => Some(format!("{address:#x}")),
        value => value.str().map(Cow::into_owned),
    }
}

impl Field for Label {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::text(self.as_str()))
    }

    fn from_value(value: Option<Value<'_>>) -> Option<Label> {
        value?.str().map(|text| Label::new(&text))
    }
}

/// Fields that are words of a closed set.
macro_rules! word_fields {
    ($($type:ty)+) => {$(
        impl Field for $type {
            fn value(&self) -> Option<Value<'_>> {
                Some(Value::text(self.as_str()))
            }

            fn from_value(value: Option<Value<'_>>) -> Option<$type> {
                value?.str().and_then(|word| <$type>::parse(word.as_bytes()))
            }
        }
    )+};
}

word_fields! { How IdleType Resched }

/// Fields that are lists, which are not written when they are empty.
macro_rules! list_fields {
    ($($variant:ident: $type:ty;)+) => {$(
        impl Field for $type {
            fn value(&self) -> Option<Value<'_>> {
                (!self.is_empty()).then(|| Value::$variant(Cow::Borrowed(self)))
            }

            fn from_value(value: Option<Value<'_>>) -> Option<$type> {
                match value {
                    None => Some(<$type>::default()),
                    Some(Value::$variant(items)) => Some(items.into_owned()),
                    Some(_) => None,
                }
            }
        }
    )+};
}

list_fields! {
    Numbers: Vec<Number>;
    Candidates: Vec<Candidate>;
    Pids: Vec<Pid>;
    Cpus: CpuMask;
}

impl Kind {
    /// Gives each field with its name, in the order of the tracepoint. Fields that a kernel
    /// does not have, and empty lists, are left out.
    pub fn fields(&self, mut field: impl FnMut(&'static str, Value<'_>)) {
        match self {
            Kind::Mark { label, value } => {
                field("label", Value::text(label.as_str()));
                field("value", Value::Int(*value));
            }
            Kind::Print(text) => field("text", Value::text(text)),
            Kind::Unknown(unknown) => field("text", Value::text(&unknown.text)),
            kind => crate::args::visit(kind, &mut field),
        }
    }

    /// The event of that name whose fields the function gives. None when one is missing or
    /// of another type; a name that is not known gives an unknown event of the field `text`.
    pub fn from_fields<'a>(name: &str, mut field: impl FnMut(&str) -> Option<Value<'a>>) -> Option<Kind> {
        if let Some(kind) = crate::args::build(name, &mut field) {
            return kind;
        }
        if name == "tracing_mark_write" {
            if let Some(label) = field("label") {
                let (label, value) = (Field::from_value(Some(label))?, Field::from_value(field("value"))?);
                return Some(Kind::Mark { label, value });
            }
            return Field::from_value(field("text")).map(Kind::Print);
        }
        let text: Box<str> = Field::from_value(field("text"))?;
        Some(Kind::Unknown(crate::Unknown { name: name.into(), text }))
    }
}
