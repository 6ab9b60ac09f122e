//! Parses the text format of Prometheus metrics (text exposition format 0.0.4):
//! `name{label="value",…} number [time]`.
//!
//! This crate has its own parser because existing ones keep the whole response with all labels.
//! Here a line is parsed in place, and its labels are parsed only if the metric is used.
//!
//! The parser is tolerant. Lines that are not samples (comments, types, lines of later formats,
//! garbage) are skipped. The caller has to notice a missing metric.

use std::borrow::Cow;

/// A sample: one line with the value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The name of the metric.
    pub name: &'a str,
    /// The text of the labels as it was written, without the braces.
    labels: &'a str,
    /// The value, which may be NaN or infinite.
    pub value: f64,
}

impl<'a> Sample<'a> {
    /// Parses a line of a response. Returns `None` if the line is not a sample.
    pub fn parse(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let end = line.find(|c: char| !is_of_name(c)).filter(|end| *end > 0)?;
        let (name, rest) = line.split_at(end);
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => {
                let end = end_of_labels(rest)?;
                (&rest[..end], &rest[end + 1..])
            }
            None if rest.starts_with([' ', '\t']) => ("", rest),
            None => return None,
        };
        // Ignore the timestamp that may follow: the reading has the time of the query.
        let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
        Some(Self { name, labels, value })
    }

    /// Returns the decoded value of the label `wanted`. Returns `None` if the sample has no such
    /// label.
    pub fn label(&self, wanted: &str) -> Option<Cow<'a, str>> {
        let mut rest = self.labels;
        loop {
            let (name, behind) = rest.split_once('=')?;
            let text = behind.trim_start().strip_prefix('"')?;
            let end = end_of_text(text)?;
            if name.trim() == wanted {
                return Some(unescaped(&text[..end]));
            }
            rest = text[end + 1..].trim_start().strip_prefix(',')?;
        }
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// Returns the byte position of the closing brace in `text`, which begins after the opening brace.
/// Braces in label values do not count.
fn end_of_labels(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        at += text.get(at..)?.find(['"', '}'])?;
        if text.as_bytes()[at] == b'}' {
            return Some(at);
        }
        at += 1;
        at += end_of_text(&text[at..])? + 1;
    }
}

/// Returns the byte position of the closing quote in `text`, which begins after the opening quote.
/// Escaped quotes do not count.
fn end_of_text(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// Decodes the escapes `\\`, `\"` and `\n` of a label value. Any other escape is kept as it is.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let (mut plain, mut chars) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, false) => plain.push(c),
            (_, true) => match chars.next() {
                Some('n') => plain.push('\n'),
                Some(c @ ('\\' | '"')) => plain.push(c),
                Some(c) => plain.extend(['\\', c]),
                None => plain.push('\\'),
            },
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_labels_and_a_number() {
        let sample =
            Sample::parse(r#"node_cpu_seconds_total{cpu="0",mode="user"} 17222.67"#).unwrap();
        assert_eq!((sample.name, sample.value), ("node_cpu_seconds_total", 17222.67));
        assert_eq!(sample.label("mode").as_deref(), Some("user"));
        assert_eq!(sample.label("cpu").as_deref(), Some("0"));
        assert_eq!(sample.label("pu"), None);
        let bare = Sample::parse("mysql_up 1 1700000000000").unwrap();
        assert_eq!((bare.name, bare.value, bare.label("cpu")), ("mysql_up", 1.0, None));
        let spaced = Sample::parse("a:b_1 { a = \"1\" , b = \"2\", } 1.5e+06 ").is_none();
        assert!(spaced, "no exporter writes a space before the brace");
        let spaced = Sample::parse("a:b_1{ a = \"1\" , b = \"2\", } 1.5e+06 ").unwrap();
        assert_eq!((spaced.label("b").as_deref(), spaced.value), (Some("2"), 1.5e6));
    }

    #[test]
    fn a_label_may_hold_anything() {
        let line = r#"m{a="}\"{,\\",b="x\ny\q",c="é="} 2"#;
        let sample = Sample::parse(line).unwrap();
        let label = |name| sample.label(name).unwrap().into_owned();
        assert_eq!(
            (label("a"), label("b"), label("c")),
            ("}\"{,\\".into(), "x\ny\\q".into(), "é=".into())
        );
    }

    #[test]
    fn numbers_are_what_they_are() {
        for (text, value) in [("+Inf", f64::INFINITY), ("-Inf", f64::NEG_INFINITY), ("-1", -1.0)] {
            assert_eq!(
                Sample::parse(&format!("m {text}")).unwrap().value.to_bits(),
                value.to_bits()
            );
        }
        assert!(Sample::parse("m NaN").unwrap().value.is_nan());
        assert_eq!(Sample::parse("m 0x10"), None);
    }

    #[test]
    fn what_is_no_sample_is_passed_over() {
        for line in [
            "",
            " ",
            "# HELP m text",
            "# TYPE m counter",
            "# EOF",
            "m",
            "m ",
            "m{",
            "m{a=\"",
            "m{a=\"}",
            "m{a=\"1\"}",
            "m{} x",
            "{\"m\", a=\"1\"} 1",
            "<html>",
            "é 1",
            "m=1",
            "m{a=\"\\\"} 1",
        ] {
            assert_eq!(Sample::parse(line), None, "{line}");
        }
    }

    #[test]
    fn labels_that_are_none_say_nothing() {
        for line in ["m{a} 1", "m{a=1} 1", "m{=\"1\"} 1", "m{a=\"1\" b=\"2\"} 1", "m{,} 1"] {
            assert_eq!(Sample::parse(line).unwrap().label("b"), None, "{line}");
        }
    }
}
