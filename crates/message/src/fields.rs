//! Fields in their order, in one buffer.
//!
//! The lines of a head are kept as they came, beside an index of where each name and value is. A
//! set of the names that occur answers most questions without a search. Removing a field removes
//! it from the index only; writing copies every run of neighbours at once.

use std::fmt;
use std::ops::Range;

use crate::name::{Name, alike};
use crate::octet::{is_token, is_value, trimmed};

/// Room for what a gateway adds to a head.
const SPARE: usize = 256;

/// The fields of a head, or trailers.
#[derive(Clone, Default)]
pub struct Fields {
    /// Lines with their ends, those removed included.
    text: Vec<u8>,
    lines: Vec<Line>,
    /// The names that occur.
    present: u64,
}

/// One field.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// Which it is.
    pub name: Name,
    /// The name as it came.
    pub spelled: &'a [u8],
    /// The value, without space around it.
    pub value: &'a [u8],
}

/// Where one field is in the text. A head is far smaller than 4 GiB, so 32 bits do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) start: u32,
    pub(crate) name_length: u32,
    pub(crate) value: u32,
    pub(crate) value_length: u32,
    pub(crate) name: Name,
    /// In the text it reads `name: value` and CR LF, as it would be written.
    pub(crate) plain: bool,
}

impl Line {
    fn spelled(self) -> Range<usize> {
        self.start as usize..(self.start + self.name_length) as usize
    }

    fn value(self) -> Range<usize> {
        self.value as usize..(self.value + self.value_length) as usize
    }

    /// The whole of a plain one.
    fn whole(self) -> Range<usize> {
        self.start as usize..(self.value + self.value_length) as usize + 2
    }
}

impl Fields {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether one of this name is there.
    pub fn has(&self, name: Name) -> bool {
        self.has_any(name.bit())
    }

    pub(crate) fn has_any(&self, names: u64) -> bool {
        self.present & names != 0
    }

    /// The value of the first of this name.
    pub fn get(&self, name: Name) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// The values of all of this name.
    pub fn all(&self, name: Name) -> impl Iterator<Item = &[u8]> {
        let lines = if self.has(name) { &self.lines[..] } else { &[] };
        lines.iter().filter(move |line| line.name == name).map(|line| &self.text[line.value()])
    }

    /// The values of all that are spelled so, but for case: for names without a [`Name`].
    pub fn named(&self, spelled: &[u8]) -> impl Iterator<Item = &[u8]> {
        self.iter()
            .filter(|field| field.spelled.eq_ignore_ascii_case(spelled))
            .map(|field| field.value)
    }

    /// All, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.lines.iter().map(|line| field(&self.text, *line))
    }

    /// Adds one behind the others. It must be valid: the gateway's own, or out of a parser.
    ///
    /// # Panics
    /// If all that has been added is beyond 4 GiB.
    pub fn push(&mut self, spelled: &[u8], value: &[u8]) {
        debug_assert!(!spelled.is_empty() && spelled.iter().all(|byte| is_token(*byte)));
        debug_assert!(is_value(value) && trimmed(value).len() == value.len());
        let name = Name::of(spelled);
        let start = self.text.len();
        self.text.reserve(spelled.len() + value.len() + 4);
        self.text.extend_from_slice(spelled);
        self.text.extend_from_slice(b": ");
        self.text.extend_from_slice(value);
        self.text.extend_from_slice(b"\r\n");
        let place = |at: usize| u32::try_from(at).expect("a head is far smaller than 4 GiB");
        // The end is the largest of them: if it fits, so do the others.
        let _ = place(self.text.len());
        self.add(Line {
            start: place(start),
            name_length: place(spelled.len()),
            value: place(start + spelled.len() + 2),
            value_length: place(value.len()),
            name,
            plain: true,
        });
    }

    /// Puts one in the place of all that are spelled so. Of `bywash-` fields, which share a
    /// [`Name`], only those of the same spelling are replaced, aliases included.
    pub fn set(&mut self, spelled: &[u8], value: &[u8]) {
        match Name::of(spelled) {
            Name::Ours
            | Name::XForwardedOther
            | Name::ForwardedAlias
            | Name::MethodOverride
            | Name::HopClaim
            | Name::NeverPassed => self.remove_alike(spelled),
            Name::Other => self.remove_named(spelled),
            name => self.remove(name),
        }
        self.push(spelled, value);
    }

    /// Removes all of this name.
    pub fn remove(&mut self, name: Name) {
        self.remove_all(name.bit());
    }

    /// Removes all of these names.
    pub(crate) fn remove_all(&mut self, names: u64) {
        if self.has_any(names) {
            self.lines.retain(|line| line.name.bit() & names == 0);
            self.present &= !names;
        }
    }

    /// Removes all that are spelled so, but for case.
    pub fn remove_named(&mut self, spelled: &[u8]) {
        self.retain(|field| !field.spelled.eq_ignore_ascii_case(spelled));
    }

    fn remove_alike(&mut self, spelled: &[u8]) {
        self.retain(|field| !alike(spelled, field.spelled));
    }

    /// Keeps those for which `keeps` says so.
    pub fn retain(&mut self, mut keeps: impl FnMut(Field<'_>) -> bool) {
        let text = &self.text;
        let mut present = 0;
        self.lines.retain(|line| {
            let kept = keeps(field(text, *line));
            present |= if kept { line.name.bit() } else { 0 };
            kept
        });
        self.present = present;
    }

    /// Writes `name: value` and CR LF for each, the name as it came.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut run = 0..0;
        for line in &self.lines {
            if line.plain && line.start as usize == run.end {
                run.end = line.whole().end;
                continue;
            }
            out.extend_from_slice(&self.text[run]);
            if line.plain {
                run = line.whole();
                continue;
            }
            run = 0..0;
            let field = field(&self.text, *line);
            out.extend_from_slice(field.spelled);
            out.extend_from_slice(b": ");
            out.extend_from_slice(field.value);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(&self.text[run]);
    }

    /// How many bytes [`write`](Self::write) needs at most.
    pub(crate) fn room(&self) -> usize {
        self.text.len() + 2 * self.lines.len()
    }

    /// None yet, but with a copy of the section of a head to find them in.
    pub(crate) fn over(section: &[u8]) -> Self {
        let mut text = Vec::with_capacity(section.len() + SPARE);
        text.extend_from_slice(section);
        Self { text, lines: Vec::with_capacity(16), present: 0 }
    }

    /// The index takes one that has been found in the text.
    pub(crate) fn add(&mut self, line: Line) {
        self.present |= line.name.bit();
        self.lines.push(line);
    }
}

fn field(text: &[u8], line: Line) -> Field<'_> {
    Field { name: line.name, spelled: &text[line.spelled()], value: &text[line.value()] }
}

impl fmt::Debug for Fields {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Field<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.spelled.escape_ascii(), self.value.escape_ascii())
    }
}
