//! The readings of a path: the ways in which applications may interpret it.
//!
//! Applications disagree on some paths: one merges `//`, one cuts path parameters (`;x`), one
//! decodes `%2F` before it splits the path. [`readings`] yields the possible meanings of a
//! canonical path. The literal path comes first, then each combination of
//!
//! - empty segments merged or kept,
//! - path parameters cut before escapes are decoded, cut after, or kept,
//! - escaped slashes and backslashes (`%2F`, `%5C`) taken for slashes or kept.
//!
//! Other escapes are decoded when segments are compared, as every application does.
//!
//! A slash at the end makes no reading of its own: patterns are matched against both forms in one
//! step ([`PathReading::ends_with_slash`]). Letter case makes none either: if the operator says
//! that the application ignores case, all comparisons ignore case.
//!
//! A path without `;`, `%` and `//` has one reading. A path has at most 13 readings. None
//! allocates, and each takes one walk over the path. To bound the cost of a hostile path, unusual
//! paths have limits ([`LONGEST`], [`MOST`]). A path beyond these limits has no readings, and its
//! request is treated as if it could be any class.

use alloc::string::String;
use alloc::vec::Vec;

/// The maximum number of segments of a path that are compared one by one. A pattern has at most
/// this many. Only a pattern that ends with `**` matches a deeper path.
pub const DEEPEST: usize = 24;

/// The maximum length, in bytes, of a path with more than one reading.
const LONGEST: usize = 1024;
/// The maximum number of slashes in a path with more than one reading.
const MOST: usize = 64;

/// The segments of a path under one reading.
#[derive(Clone, Copy, Debug)]
pub struct PathReading<'p> {
    segments: [&'p str; DEEPEST],
    /// The number of segments of the path. Counting stops at [`DEEPEST`] + 1.
    length: usize,
    /// Whether the path ends with a slash; true for the root path.
    slash: bool,
    comparison: Comparison,
}

/// The settings for comparing the segments of the path with those of a pattern.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    decodes: bool,
    ignores_case: bool,
}

/// An assumption about how an application treats the unusual parts of a path.
#[derive(Clone, Copy, Debug)]
struct Normalization {
    cuts: Cut,
    /// Whether escaped slashes and backslashes split segments.
    splits: bool,
    merges: bool,
}

/// The way in which an application cuts path parameters off a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Never,
    /// Cuts at `;`, before escapes are decoded.
    First,
    /// Cuts at `;` and at `%3B`, after escaped slashes have split segments.
    Last,
}

const NORMALIZATIONS: [Normalization; 12] = {
    let mut normalizations = [Normalization { cuts: Cut::Never, splits: false, merges: false }; 12];
    let mut at = 0;
    while at < normalizations.len() {
        normalizations[at] = Normalization {
            cuts: match at / 4 {
                0 => Cut::Never,
                1 => Cut::First,
                _ => Cut::Last,
            },
            splits: at & 2 != 0,
            merges: at & 1 != 0,
        };
        at += 1;
    }
    normalizations
};

/// The unusual parts that a path has.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "any of them may be there")]
struct UnusualParts {
    /// The path has `//`.
    empty: bool,
    /// The path has `;`.
    parameters: bool,
    /// The path has `%`.
    escapes: bool,
    /// The path has `%2F` or `%5C`.
    slashes: bool,
    /// The path has `%3B`.
    hidden_parameters: bool,
}

impl UnusualParts {
    fn of(path: &str) -> Self {
        let bytes = path.as_bytes();
        // The loop has no early exit, so that the compiler can vectorise it.
        let has =
            |wanted: u8| bytes.iter().fold(0, |has, byte| has | u8::from(*byte == wanted)) != 0;
        let pairs = bytes.iter().zip(bytes.get(1..).unwrap_or_default());
        let both = |(a, b): (&u8, &u8)| u8::from(*a == b'/') & u8::from(*b == b'/');
        let empty = pairs.fold(0, |has, pair| has | both(pair)) != 0;
        let escapes = has(b'%');
        let has_code =
            |code: &[u8]| escapes && bytes.windows(3).any(|three| three.eq_ignore_ascii_case(code));
        Self {
            empty,
            parameters: has(b';'),
            escapes,
            slashes: has_code(b"%2F") || has_code(b"%5C"),
            hidden_parameters: has_code(b"%3B"),
        }
    }

    const fn is_plain(self) -> bool {
        !self.escapes && self.has_same_segments()
    }

    /// Returns whether all normalizations give this path the same segments.
    const fn has_same_segments(self) -> bool {
        !self.empty && !self.parameters && !self.slashes && !self.hidden_parameters
    }

    /// Returns whether the path reads differently under this normalization than under a simpler
    /// one.
    fn distinguish(self, normalization: Normalization) -> bool {
        let cuts = match normalization.cuts {
            Cut::Never => true,
            Cut::First => self.parameters,
            Cut::Last => self.hidden_parameters || (self.parameters && normalization.splits),
        };
        let makes_empty = self.empty || normalization.splits || normalization.cuts != Cut::Never;
        cuts && (!normalization.splits || self.slashes) && (!normalization.merges || makes_empty)
    }
}

/// Returns the readings of a canonical path (as `bywash_message::Target` writes it), the literal
/// one first.
///
/// A text that is not a path, like the `*` of `OPTIONS *`, has no readings. Two readings may have
/// the same segments. Returns `None` if an unusual path exceeds the limits for paths with several
/// readings. Such a path may mean anything.
pub fn readings(path: &str, ignores_case: bool) -> Option<impl Iterator<Item = PathReading<'_>>> {
    let first = PathReading::plain(path, ignores_case);
    let unusual = UnusualParts::of(path);
    let is_too_long =
        || path.len() > LONGEST || path.bytes().filter(|byte| *byte == b'/').count() > MOST;
    if !unusual.has_same_segments() && is_too_long() {
        return None;
    }
    let normalizations =
        if unusual.is_plain() || first.is_none() { &[][..] } else { &NORMALIZATIONS[..] };
    let others = normalizations.iter().enumerate().filter(move |(at, normalization)| {
        // The first normalization repeats the literal path, decoded. It is needed only if the path
        // has escapes.
        if *at == 0 { unusual.escapes } else { unusual.distinguish(**normalization) }
    });
    let decoded = Comparison { decodes: unusual.escapes, ignores_case };
    let others =
        others.map(move |(_, normalization)| PathReading::new(path, *normalization, decoded));
    Some(first.into_iter().chain(others))
}

impl<'p> PathReading<'p> {
    /// Reads a path literally. Returns `None` if the text is not a path.
    pub fn plain(path: &'p str, ignores_case: bool) -> Option<Self> {
        let comparison = Comparison { decodes: false, ignores_case };
        path.starts_with('/').then(|| Self::new(path, NORMALIZATIONS[0], comparison))
    }

    fn new(path: &'p str, normalization: Normalization, comparison: Comparison) -> Self {
        let mut reading = Self { segments: [""; DEEPEST], length: 0, slash: false, comparison };
        for segment in path.get(1..).unwrap_or_default().split('/') {
            let segment = if normalization.cuts == Cut::First {
                before(segment, is_semicolon)
            } else {
                segment
            };
            if normalization.splits {
                for piece in pieces(segment) {
                    reading.push(piece, normalization);
                }
            } else {
                reading.push(segment, normalization);
            }
            if reading.length > DEEPEST {
                break;
            }
        }
        reading
    }

    /// Appends a segment. An empty segment is the slash at the end, unless another segment follows.
    fn push(&mut self, segment: &'p str, normalization: Normalization) {
        let segment = if normalization.cuts == Cut::Last {
            before(segment, is_any_semicolon)
        } else {
            segment
        };
        if self.slash && !normalization.merges {
            self.append("");
        }
        self.slash = segment.is_empty();
        if !self.slash {
            self.append(segment);
        }
    }

    fn append(&mut self, segment: &'p str) {
        if let Some(slot) = self.segments.get_mut(self.length) {
            *slot = segment;
        }
        self.length = (self.length + 1).min(DEEPEST + 1);
    }

    /// Returns the number of segments, not counting the empty one after a slash at the end. The
    /// result is at most [`DEEPEST`] + 1.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Returns whether the path ends with a slash; true for the root path.
    pub const fn ends_with_slash(&self) -> bool {
        self.slash
    }

    /// Returns the same path with its slash at the end added or removed; `None` for the root path.
    #[must_use]
    pub const fn toggled(self) -> Option<Self> {
        if self.length == 0 { None } else { Some(Self { slash: !self.slash, ..self }) }
    }

    /// Returns the segment at index `at`, as written. The result is empty if `at` is beyond the
    /// last segment that is kept.
    pub fn segment(&self, at: usize) -> &'p str {
        self.segments.get(at).copied().unwrap_or_default()
    }

    /// Calls `find` with the first segment in the form in which it is compared. That form is
    /// decoded, and in lower case if case is ignored.
    pub(super) fn with_first_name<T>(&self, find: impl FnOnce(&str) -> T) -> T {
        let segment = self.segment(0);
        let Comparison { decodes, ignores_case } = self.comparison;
        let is_plain =
            |byte: u8| !(decodes && byte == b'%' || ignores_case && byte.is_ascii_uppercase());
        if segment.bytes().all(is_plain) {
            return find(segment);
        }
        let folded = |byte: u8| if ignores_case { byte.to_ascii_lowercase() } else { byte };
        let bytes: Vec<u8> = if decodes {
            decoded(segment).map(folded).collect()
        } else {
            segment.bytes().map(folded).collect()
        };
        find(&String::from_utf8_lossy(&bytes))
    }

    /// Returns whether the segment at index `at` equals `literal`, after decoding.
    pub fn is(&self, at: usize, literal: &str) -> bool {
        let segment = self.segment(at);
        segment == literal || self.comparison.are_alike(segment, literal)
    }

    /// Returns whether the segment at index `at` ends with `ending`, after decoding.
    pub fn ends_with(&self, at: usize, ending: &str) -> bool {
        let segment = self.segment(at);
        let tail = || segment.len().checked_sub(ending.len()).and_then(|at| segment.get(at..));
        segment.ends_with(ending)
            || tail().is_some_and(|tail| self.comparison.are_alike(tail, ending))
    }
}

impl Comparison {
    fn are_alike(self, a: &str, b: &str) -> bool {
        let folded = |byte: u8| if self.ignores_case { byte.to_ascii_lowercase() } else { byte };
        if self.decodes && (a.contains('%') || b.contains('%')) {
            decoded(a).map(folded).eq(decoded(b).map(folded))
        } else {
            self.ignores_case && a.eq_ignore_ascii_case(b)
        }
    }
}

/// Returns the bytes of a text with its escapes decoded. Invalid escapes are kept as they are.
pub fn decoded(text: &str) -> impl Iterator<Item = u8> + '_ {
    let mut rest = text.as_bytes();
    core::iter::from_fn(move || {
        let (byte, behind) = rest.split_first()?;
        let digit = |at: usize| char::from(*behind.get(at)?).to_digit(16);
        if let (b'%', Some(high), Some(low)) = (byte, digit(0), digit(1)) {
            rest = &behind[2..];
            return Some((high * 16 + low) as u8);
        }
        rest = behind;
        Some(*byte)
    })
}

fn before(segment: &str, is_end: impl Fn(&[u8]) -> bool) -> &str {
    let bytes = segment.as_bytes();
    let end = (0..bytes.len()).find(|at| is_end(&bytes[*at..]));
    &segment[..end.unwrap_or(bytes.len())]
}

fn is_semicolon(text: &[u8]) -> bool {
    text.first() == Some(&b';')
}

fn is_any_semicolon(text: &[u8]) -> bool {
    is_semicolon(text) || is_escape(text, *b"%3B")
}

fn is_slash(text: &[u8]) -> bool {
    is_escape(text, *b"%2F") || is_escape(text, *b"%5C")
}

fn is_escape(text: &[u8], code: [u8; 3]) -> bool {
    text.get(..3).is_some_and(|three| three.eq_ignore_ascii_case(&code))
}

/// Returns the parts into which escaped slashes and backslashes split a segment.
fn pieces(segment: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(segment);
    core::iter::from_fn(move || {
        let text = rest?;
        let piece = before(text, is_slash);
        rest = text.get(piece.len() + 3..);
        Some(piece)
    })
}
