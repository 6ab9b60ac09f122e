//! Formats problems together with the lines of the file that they are about, using `miette`.
//!
//! The lines shown differ from the lines of the file: characters that could control a terminal are
//! replaced, and long lines are truncated. Line and column in the heading are those of the file.

use std::fmt;
use std::ops::Range;

use bywash_terminal::text::is_unsafe;
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError,
    MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};

use crate::problem::{Problem, Problems, Severity};
use crate::source::{Source, floor, shown};

/// The maximum number of bytes of a line that are shown.
const LINE: usize = 240;
/// The column at which messages are wrapped.
const WIDTH: usize = 100;

impl Problems {
    /// Formats all problems for people. `color` tells whether to use colours, which the caller
    /// decides from the terminal and `NO_COLOR`.
    pub fn render(&self, color: bool) -> String {
        let theme =
            if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(WIDTH)
            .with_context_lines(0)
            .with_links(false);
        let excerpts = Excerpts::new(&self.text);
        let mut out = String::new();
        for problem in self {
            if !out.is_empty() {
                out.push('\n');
            }
            let drawing = Drawing { problem, excerpts: &excerpts };
            if handler.render_report(&mut out, &drawing).is_err() {
                // If formatting fails, the problem is shown without the lines of the file.
                out.push_str(&drawing.to_string());
                out.push('\n');
            }
        }
        out.push('\n');
        out + &self.summary()
    }

    fn summary(&self) -> String {
        let more = if self.more > 0 { format!(", and {} more", self.more) } else { String::new() };
        let errors = counted(self.count(Severity::Error), "error");
        let warnings = counted(self.count(Severity::Warning), "warning");
        format!("{errors}, {warnings}{more} in {}\n", shown(&self.text.name))
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// One problem, in the form that `miette` accepts.
#[derive(thiserror::Error)]
#[error("{} {}", problem.code, problem.message)]
struct Drawing<'a> {
    problem: &'a Problem,
    excerpts: &'a Excerpts<'a>,
}

impl fmt::Debug for Drawing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Diagnostic for Drawing<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.problem.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        (!self.excerpts.source.text.is_empty()).then_some(self.excerpts as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let here = self.excerpts.label(&self.problem.span, None);
        let there = self.problem.elsewhere.as_ref();
        let there = there.map(|there| self.excerpts.label(&there.span, Some(there.label.clone())));
        Some(Box::new([here].into_iter().chain(there)))
    }
}

/// The lines of a source in a form that is safe to show. Offsets are those of the source, because
/// every replacement has as many bytes as the original.
struct Excerpts<'a> {
    source: &'a Source,
    name: String,
    clean: String,
}

impl<'a> Excerpts<'a> {
    fn new(source: &'a Source) -> Self {
        let mut clean = String::with_capacity(source.text.len());
        source.text.chars().for_each(|c| add_harmless(&mut clean, c));
        Self { source, name: shown(&source.name), clean }
    }

    fn label(&self, span: &Range<usize>, text: Option<String>) -> LabeledSpan {
        let line = self.cut(self.source.line_of(span.start));
        let start = span.start.min(line.end);
        LabeledSpan::new(text, start, span.end.min(line.end) - start)
    }

    /// Returns the part of the line at `index` that is shown.
    fn cut(&self, index: usize) -> Range<usize> {
        let line = self.source.line(index);
        line.start..floor(&self.clean, line.end.min(line.start + LINE))
    }
}

impl SourceCode for Excerpts<'_> {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        _: usize,
        _: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let first = self.source.line_of(span.offset());
        let last = self.source.line_of(span.offset() + span.len());
        if first != last && self.cut(first).end < self.source.line(first).end {
            // One excerpt of both lines would show the part of the first line that is cut off.
            // After this error, `miette` draws two excerpts.
            return Err(MietteError::OutOfBounds);
        }
        let shown = self.cut(first).start..self.cut(last).end;
        let column = self.source.position(span.offset()).1 - 1;
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            &self.clean.as_bytes()[shown.clone()],
            (shown.start, shown.len()).into(),
            first,
            column,
            1,
        )))
    }
}

/// Appends `c` to `clean`, or a replacement with as many bytes if `c` could control a terminal.
fn add_harmless(clean: &mut String, c: char) {
    match c.len_utf8() {
        _ if matches!(c, '\n' | '\t') || !is_unsafe(c) => clean.push(c),
        1 => clean.push('?'),
        2 => clean.push('¿'),
        3 => clean.push('\u{fffd}'),
        _ => clean.push_str("¿¿"),
    }
}
