//! The readings of a path: the ways in which applications may interpret it.
//!
//! Applications disagree on some paths: one merges `//`, one cuts path parameters (`;x`), one
//! decodes `%2F` before it splits. [`readings`] yields the possible meanings of a canonical path:
//! first the literal path, then each combination of
//!
//! - empty segments merged or kept,
//! - path parameters cut before escapes are decoded, after, or kept,
//! - escaped slashes and backslashes (`%2F`, `%5C`) taken for slashes or kept,
//! - other escapes decoded, which every application does, when segments are compared.
//!
//! A slash at the end and letter case make no readings of their own: patterns are matched against
//! both forms at once ([`PathReading::ends_with_slash`]), and if the operator says that the
//! application ignores case, all comparisons do.
//!
//! A path without `;`, `%` and `//` has one reading. There are at most 13, none allocates, and each
//! takes one walk over the path. To bound the cost of a hostile path, unusual paths have limits
//! ([`LONGEST`], [`MOST`]); a path beyond them counts as everything that it could be.

use alloc::string::String;
use alloc::vec::Vec;

/// The number of segments of a path that are distinguished. A pattern has no more; only a pattern
/// with a rest (`**`) matches deeper paths.
pub const DEEPEST: usize = 24;

/// The maximum length, in bytes, of a path that is read in several ways.
const LONGEST: usize = 1024;
/// The maximum number of slashes of a path that is read in several ways.
const MOST: usize = 64;

/// The segments of a path in one reading.
#[derive(Clone, Copy, Debug)]
pub struct PathReading<'p> {
    segments: [&'p str; DEEPEST],
    /// The number of segments, up to one more than are kept.
    length: usize,
    /// Whether the path ends with a slash. The root does.
    slash: bool,
    comparison: Comparison,
}

/// How segments are compared.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    decodes: bool,
    ignores_case: bool,
}

/// How an application treats the unusual parts of a path.
#[derive(Clone, Copy, Debug)]
struct Normalization {
    cuts: Cut,
    /// Whether escaped slashes are slashes.
    splits: bool,
    merges: bool,
}

/// When path parameters are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Never,
    /// Cut at `;`, before escapes are decoded.
    First,
    /// Cut at `;` and at its escape, after escaped slashes have split segments.
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

/// The unusual parts of a path.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "any of them may be there")]
struct UnusualParts {
    /// `//`.
    empty: bool,
    /// `;`.
    parameters: bool,
    /// `%`.
    escapes: bool,
    /// `%2F` or `%5C`.
    slashes: bool,
    /// `%3B`.
    hidden_parameters: bool,
}

impl UnusualParts {
    fn of(path: &str) -> Self {
        let bytes = path.as_bytes();
        // There is no early exit, so that the loop is vectorised.
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

    /// Returns whether all normalizations find the same segments.
    const fn has_same_segments(self) -> bool {
        !self.empty && !self.parameters && !self.slashes && !self.hidden_parameters
    }

    /// Returns whether a normalization reads a path with these parts differently from a simpler
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
/// one first. A text that is not a path, like the `*` of `OPTIONS *`, has none. Two readings may
/// have the same segments. Returns `None` if the path is unusual and exceeds the limits of paths
/// that are read in several ways; it may then be anything.
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
        // The literal path is repeated only if decoding makes a difference.
        if *at == 0 { unusual.escapes } else { unusual.distinguish(**normalization) }
    });
    let decoded = Comparison { decodes: unusual.escapes, ignores_case };
    let others =
        others.map(move |(_, normalization)| PathReading::new(path, *normalization, decoded));
    Some(first.into_iter().chain(others))
}

impl<'p> PathReading<'p> {
    /// Reads a path literally; `None` if the text is not a path.
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

    /// Appends a segment. An empty one is the slash at the end unless another segment follows.
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

    /// Returns the number of segments, without the empty one that a slash at the end makes; at most
    /// [`DEEPEST`] + 1.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Returns whether the path ends with a slash.
    pub const fn ends_with_slash(&self) -> bool {
        self.slash
    }

    /// Returns the same path with its final slash added or removed; `None` for the root.
    #[must_use]
    pub const fn toggled(self) -> Option<Self> {
        if self.length == 0 { None } else { Some(Self { slash: !self.slash, ..self }) }
    }

    /// Returns a segment; empty beyond those that are kept.
    pub fn segment(&self, at: usize) -> &'p str {
        self.segments.get(at).copied().unwrap_or_default()
    }

    /// Calls `find` with the first segment as it is compared: decoded, and in lower case if case is
    /// ignored.
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

    /// Returns whether a segment equals a literal.
    pub fn is(&self, at: usize, literal: &str) -> bool {
        let segment = self.segment(at);
        segment == literal || self.comparison.are_alike(segment, literal)
    }

    /// Returns whether a segment has this ending.
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

/// Returns the bytes of a text with its escapes decoded. Invalid escapes stay as they are.
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

/// Returns the parts of a segment between escaped slashes.
fn pieces(segment: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(segment);
    core::iter::from_fn(move || {
        let text = rest?;
        let piece = before(text, is_slash);
        rest = text.get(piece.len() + 3..);
        Some(piece)
    })
}
