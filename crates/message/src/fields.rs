//! The fields of a message, in their order and in one buffer.
//!
//! The lines of a head are stored as they arrived. An index has the position of each name and value
//! in them. A bit set of the names that occur answers most questions without a search. Removing a
//! field removes only its entry in the index. Writing copies each run of adjacent lines in one
//! operation.

use std::fmt;
use std::ops::Range;

use crate::character_class::{is_token, is_value, trimmed};
use crate::name::{Name, alike};

/// The spare capacity in bytes for the fields that a gateway adds to a head.
const SPARE: usize = 256;

/// The number of fields in the head of a browser, for an index whose number of fields is unknown.
const USUAL_FIELDS: usize = 16;

/// The spare space in an index for the fields that a gateway adds to a head.
const SPARE_FIELDS: usize = 8;

/// The fields of a head or of trailers.
#[derive(Clone, Default)]
pub struct Fields {
    /// The lines with their line ends, including lines that were removed from the index.
    text: Vec<u8>,
    lines: Vec<Line>,
    /// The set of the names that occur, as a bit set.
    present: u64,
}

/// A single field.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// The known name, or [`Name::Other`].
    pub name: Name,
    /// The name as it was spelled.
    pub spelled: &'a [u8],
    /// The value, without white space around it.
    pub value: &'a [u8],
}

/// The position of one field in the text. Offsets have 32 bits, because a head is far smaller than
/// 4 GiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) start: u32,
    pub(crate) name_length: u32,
    pub(crate) value: u32,
    pub(crate) value_length: u32,
    pub(crate) name: Name,
    /// Whether the line is stored as `name: value` and CR LF, exactly as the gateway would write
    /// it.
    pub(crate) plain: bool,
}

impl Line {
    fn spelled(self) -> Range<usize> {
        self.start as usize..(self.start + self.name_length) as usize
    }

    fn value(self) -> Range<usize> {
        self.value as usize..(self.value + self.value_length) as usize
    }

    /// Returns the range of the whole line with its line end. The line must be
    /// [`plain`](Self::plain).
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

    /// Returns the value of the first field of this name. Returns `None` if there is no such field.
    pub fn get(&self, name: Name) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// Returns the values of all fields of this name, in their order.
    pub fn all(&self, name: Name) -> impl Iterator<Item = &[u8]> {
        let lines = if self.has(name) { &self.lines[..] } else { &[] };
        lines.iter().filter(move |line| line.name == name).map(|line| &self.text[line.value()])
    }

    /// Returns the values of all fields with this spelling, ignoring case. This method is for names
    /// that have no [`Name`].
    pub fn named(&self, spelled: &[u8]) -> impl Iterator<Item = &[u8]> {
        self.iter()
            .filter(|field| field.spelled.eq_ignore_ascii_case(spelled))
            .map(|field| field.value)
    }

    /// Returns all fields in their order.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.lines.iter().map(|line| field(&self.text, *line))
    }

    /// Appends a field. The caller ensures that the field is valid: the field is the gateway's own
    /// or comes from a parser.
    ///
    /// # Panics
    /// Panics if the text grows beyond 4 GiB.
    pub fn push(&mut self, spelled: &[u8], value: &[u8]) {
        self.push_named(Name::of(spelled), spelled, value);
    }

    /// Appends a field with the value of the first field `of`. Does nothing if there is none.
    ///
    /// # Panics
    /// Panics if the text grows beyond 4 GiB.
    pub fn push_copy(&mut self, spelled: &[u8], of: Name) {
        let mut lines = self.lines.iter().filter(|_| self.has(of));
        let Some(value) = lines.find(|line| line.name == of).map(|line| line.value()) else {
            return;
        };
        let length = value.len();
        self.append(Name::of(spelled), spelled, length, |text| text.extend_from_within(value));
    }

    fn push_named(&mut self, name: Name, spelled: &[u8], value: &[u8]) {
        debug_assert!(is_value(value) && trimmed(value).len() == value.len());
        self.append(name, spelled, value.len(), |text| text.extend_from_slice(value));
    }

    /// Appends a field whose value has this length. `write` appends the value to the text.
    fn append(
        &mut self,
        name: Name,
        spelled: &[u8],
        length: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        debug_assert!(!spelled.is_empty() && spelled.iter().all(|byte| is_token(*byte)));
        let start = self.text.len();
        self.text.reserve(spelled.len() + length + 4);
        self.text.extend_from_slice(spelled);
        self.text.extend_from_slice(b": ");
        write(&mut self.text);
        self.text.extend_from_slice(b"\r\n");
        let place = |at: usize| u32::try_from(at).expect("a head is far smaller than 4 GiB");
        // The end of the text is the largest offset. If that offset fits into 32 bits, the others
        // fit too.
        let _ = place(self.text.len());
        self.add(Line {
            start: place(start),
            name_length: place(spelled.len()),
            value: place(start + spelled.len() + 2),
            value_length: place(length),
            name,
            plain: true,
        });
    }

    /// Replaces all fields of this name by one field. Several names may share a [`Name`], as the
    /// `bywash-` fields do. For such names, only fields of the same spelling are replaced,
    /// including its aliases.
    pub fn set(&mut self, spelled: &[u8], value: &[u8]) {
        let name = Name::of(spelled);
        match name {
            Name::Ours
            | Name::XForwardedOther
            | Name::ForwardedAlias
            | Name::MethodOverride
            | Name::HopClaim
            | Name::NeverPassed => self.remove_alike(spelled),
            Name::Other => self.remove_named(spelled),
            name => self.remove(name),
        }
        self.push_named(name, spelled, value);
    }

    /// Removes all fields of this name.
    pub fn remove(&mut self, name: Name) {
        self.remove_all(name.bit());
    }

    /// Removes all fields whose names are in this set.
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

    /// Removes a field in every spelling that some application takes for this one.
    pub fn remove_alike(&mut self, spelled: &[u8]) {
        if self.iter().any(|field| alike(spelled, field.spelled)) {
            self.retain(|field| !alike(spelled, field.spelled));
        }
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

    /// Creates an empty index over a copy of the field section of a head. The caller parses the
    /// section, and adds the fields that it finds by [`Self::add`].
    pub(crate) fn over(section: &[u8]) -> Self {
        let mut fields = Self::with_capacity(section.len(), USUAL_FIELDS);
        fields.text.extend_from_slice(section);
        fields
    }

    /// Creates an empty set with space for lines of this length, this many fields, and those that a
    /// gateway adds.
    pub(crate) fn with_capacity(length: usize, count: usize) -> Self {
        let text = Vec::with_capacity(length + SPARE);
        Self { text, lines: Vec::with_capacity(count + SPARE_FIELDS), present: 0 }
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
