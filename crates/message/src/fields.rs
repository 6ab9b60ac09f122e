//! The fields of a message in their order, in one buffer.
//!
//! The lines of a head are kept as they arrived, next to an index with the position of each name
//! and value. A bit set of the names that occur answers most questions without a search. Removing a
//! field removes it from the index only. Writing copies each run of adjacent lines at once.

use std::fmt;
use std::ops::Range;

use crate::character_class::{is_token, is_value, trimmed};
use crate::name::{Name, alike};

/// Spare capacity, in bytes, for the fields that a gateway adds to a head.
const SPARE: usize = 256;

/// The fields of a head or of trailers.
#[derive(Clone, Default)]
pub struct Fields {
    /// The lines with their line ends, removed ones included.
    text: Vec<u8>,
    lines: Vec<Line>,
    /// The names that occur, as a bit set.
    present: u64,
}

/// A single field.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// The name, if it is a known one.
    pub name: Name,
    /// The name as it was spelled.
    pub spelled: &'a [u8],
    /// The value, without space around it.
    pub value: &'a [u8],
}

/// The position of one field in the text. A head is far smaller than 4 GiB, so 32 bits suffice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) start: u32,
    pub(crate) name_length: u32,
    pub(crate) value: u32,
    pub(crate) value_length: u32,
    pub(crate) name: Name,
    /// Whether the text reads `name: value` and CR LF, exactly as the gateway would write it.
    pub(crate) plain: bool,
}

impl Line {
    fn spelled(self) -> Range<usize> {
        self.start as usize..(self.start + self.name_length) as usize
    }

    fn value(self) -> Range<usize> {
        self.value as usize..(self.value + self.value_length) as usize
    }

    /// Returns the range of the whole line, if it is a plain one.
    fn whole(self) -> Range<usize> {
        self.start as usize..(self.value + self.value_length) as usize + 2
    }
}

impl Fields {
    /// Creates an empty set of fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns whether a field of this name is present.
    pub fn has(&self, name: Name) -> bool {
        self.has_any(name.bit())
    }

    pub(crate) fn has_any(&self, names: u64) -> bool {
        self.present & names != 0
    }

    /// Returns the value of the first field of this name.
    pub fn get(&self, name: Name) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// Returns the values of all fields of this name.
    pub fn all(&self, name: Name) -> impl Iterator<Item = &[u8]> {
        let lines = if self.has(name) { &self.lines[..] } else { &[] };
        lines.iter().filter(move |line| line.name == name).map(|line| &self.text[line.value()])
    }

    /// Returns the values of all fields with this spelling, ignoring case. Meant for names without
    /// a [`Name`].
    pub fn named(&self, spelled: &[u8]) -> impl Iterator<Item = &[u8]> {
        self.iter()
            .filter(|field| field.spelled.eq_ignore_ascii_case(spelled))
            .map(|field| field.value)
    }

    /// Iterates over all fields in their order.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.lines.iter().map(|line| field(&self.text, *line))
    }

    /// Appends a field. The field must be valid: it is the gateway's own or comes from a parser.
    ///
    /// # Panics
    /// If the text grows beyond 4 GiB.
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
        // The end is the largest offset: if it fits, the others fit too.
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

    /// Replaces all fields of this name by one field. Where several names share a [`Name`], as the
    /// `bywash-` fields do, only fields of the same spelling are replaced, aliases included.
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

    /// Removes all fields of this name.
    pub fn remove(&mut self, name: Name) {
        self.remove_all(name.bit());
    }

    /// Removes all fields of these names.
    pub(crate) fn remove_all(&mut self, names: u64) {
        if self.has_any(names) {
            self.lines.retain(|line| line.name.bit() & names == 0);
            self.present &= !names;
        }
    }

    /// Removes all fields with this spelling, ignoring case.
    pub fn remove_named(&mut self, spelled: &[u8]) {
        self.retain(|field| !field.spelled.eq_ignore_ascii_case(spelled));
    }

    /// Removes a field in every spelling that some application takes for it.
    pub fn remove_alike(&mut self, spelled: &[u8]) {
        self.retain(|field| !alike(spelled, field.spelled));
    }

    /// Keeps only the fields for which `keeps` returns true.
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

    /// Writes `name: value` and CR LF for each field, with the name as it was spelled.
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

    /// Returns the maximum number of bytes that [`write`](Self::write) appends.
    pub(crate) fn room(&self) -> usize {
        self.text.len() + 2 * self.lines.len()
    }

    /// Creates an empty index over a copy of the field section of a head, in which the caller finds
    /// fields.
    pub(crate) fn over(section: &[u8]) -> Self {
        let mut text = Vec::with_capacity(section.len() + SPARE);
        text.extend_from_slice(section);
        Self { text, lines: Vec::with_capacity(16), present: 0 }
    }

    /// Adds a field that the caller has found in the text to the index.
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
