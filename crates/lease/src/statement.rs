//! Reads the text of a running statement: which request it belongs to, and whether it only reads.
//!
//! An application wrote the text, and input of its visitors may be part of it. Therefore query tags
//! count only at the very front, where no visitor's input can stand. A statement counts as reading
//! only if nothing outside of literals and comments says otherwise. Text that this module does not
//! understand counts as a write.

/// The query tags in front of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryTags<'a> {
    /// The name of the request that the statement works for: `/*bywash-request='…'*/`.
    pub request: Option<&'a str>,
    /// The trace and span that the statement belongs to: `/*traceparent='…'*/`, as SQLCommenter
    /// writes it.
    pub traceparent: Option<&'a str>,
}

/// Parses the query tags of a statement. They stand in one comment in front, in any order,
/// separated by commas. A tag that is missing or malformed is `None`.
///
/// The comment stands in front because databases show only the beginning of a long statement
/// (PostgreSQL: 1,024 bytes).
pub fn query_tags(text: &str) -> QueryTags<'_> {
    let mut tags = QueryTags::default();
    let comment = text.trim_ascii_start().strip_prefix("/*").and_then(|rest| rest.split_once("*/"));
    for part in comment.map_or("", |(comment, _)| comment).split(',') {
        let Some((key, value)) = part.trim_ascii().split_once('=') else { continue };
        let Some(value) = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''))
        else {
            continue;
        };
        match key {
            "bywash-request" => tags.request = Some(value),
            "traceparent" => tags.traceparent = Some(value),
            _ => {}
        }
    }
    tags
}

/// Returns whether a statement only reads, as far as its text shows.
///
/// A function that the statement calls may write, and the end of a long text may be missing. Some
/// databases, such as PostgreSQL, know whether the transaction has written. The caller must ask
/// them too.
pub fn only_reads(text: &str) -> bool {
    let Some(words) = words(text) else { return false };
    let first = words.iter().find(|word| **word != "(");
    let reads = match first.map(|word| word.to_ascii_uppercase()).as_deref() {
        Some("SELECT" | "VALUES" | "TABLE" | "SHOW" | "DESC" | "DESCRIBE") => true,
        Some("WITH" | "EXPLAIN") => !words.iter().any(|word| is_any(word, &CHANGES)),
        _ => false,
    };
    reads && !words.contains(&";") && !words.iter().any(|word| is_any(word, &LOCKS))
}

/// The keywords that change data, also inside `WITH` and under `EXPLAIN ANALYZE`.
const CHANGES: [&str; 8] =
    ["INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "TRUNCATE", "CREATE", "EXECUTE"];

/// The keywords that make a reading statement lock rows (`FOR UPDATE`, `LOCK IN SHARE MODE`) or
/// write a file or a table (`INTO`).
const LOCKS: [&str; 3] = ["FOR", "LOCK", "INTO"];

fn is_any(word: &str, words: &[&str]) -> bool {
    words.iter().any(|one| word.eq_ignore_ascii_case(one))
}

/// Returns the words of a statement outside of literals, quoted names and comments. Brackets and
/// semicolons are words.
///
/// Returns `None` if databases disagree about the text, so that one of them may see a word where
/// this function sees none. The cases are:
///
/// - a literal or a comment that does not end, and a backslash in a literal;
/// - `#`, and `--` without a space after it: comments in MySQL, operators in PostgreSQL;
/// - `$…$`, which is a literal in PostgreSQL;
/// - a comment in a comment, and a comment that MySQL executes.
fn words(text: &str) -> Option<Vec<&str>> {
    let mut words = Vec::new();
    let mut rest = text.trim_ascii_end().trim_end_matches(';');
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '\'' | '"' | '`' => after_literal(rest, first)?,
            '#' => return None,
            '$' if !rest[1..].starts_with(|next: char| next.is_ascii_digit()) => return None,
            _ if rest.starts_with("--") => after_line(rest)?,
            _ if rest.starts_with("/*!") || rest.starts_with("/*M!") => return None,
            _ if rest.starts_with("/*") => after_comment(rest)?,
            '(' | ';' => {
                words.push(&rest[..1]);
                &rest[1..]
            }
            _ if is_of_a_word(first) => {
                let end = rest.find(|other| !is_of_a_word(other)).unwrap_or(rest.len());
                words.push(&rest[..end]);
                &rest[end..]
            }
            other => &rest[other.len_utf8()..],
        };
    }
    Some(words)
}

fn is_of_a_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Returns the text after the comment at the start of `text`. Returns `None` for a comment with
/// `/*` inside, because PostgreSQL nests comments and MySQL does not.
fn after_comment(text: &str) -> Option<&str> {
    let (comment, rest) = text[2..].split_once("*/")?;
    (!comment.contains("/*") && !comment.ends_with('/')).then_some(rest)
}

/// Returns the text after the line comment at the start of `text`, which begins with `--`. Returns
/// `None` if no white space follows the `--`, because databases disagree about such text.
fn after_line(text: &str) -> Option<&str> {
    let is_comment = text[2..].starts_with(|next: char| next.is_ascii_whitespace());
    let rest = || text.split_once('\n').map_or("", |(_, next)| next);
    is_comment.then(rest)
}

/// Returns the text after the literal at the start of `text`. A doubled quotation mark inside it
/// counts as its end and the start of another literal.
fn after_literal(text: &str, mark: char) -> Option<&str> {
    let (literal, rest) = text[1..].split_once(mark)?;
    (!literal.contains('\\')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_query_tag_counts_in_front_and_nowhere_else() {
        let tagged = "/*bywash-request='5f1c'*/ SELECT 1";
        assert_eq!(query_tags(tagged).request, Some("5f1c"));
        assert_eq!(query_tags("  /*bywash-request='5f1c'*/SELECT 1").request, Some("5f1c"));
        let both = query_tags("/*traceparent='00-a-b-01',bywash-request='5f1c'*/ SELECT 1");
        assert_eq!(both, QueryTags { request: Some("5f1c"), traceparent: Some("00-a-b-01") });
        assert_eq!(query_tags("SELECT '/*bywash-request=''5f1c''*/'").request, None);
        assert_eq!(query_tags("SELECT 1 /*bywash-request='5f1c'*/").request, None);
        assert_eq!(query_tags("/* nothing */ /*bywash-request='5f1c'*/ SELECT 1").request, None);
        assert_eq!(query_tags("/*bywash-request='5f1c' SELECT 1").request, None);
        assert_eq!(query_tags("/*bywash-request=5f1c*/ SELECT 1").request, None);
        assert_eq!(query_tags(""), QueryTags::default());
    }

    #[test]
    fn what_reads_is_known() {
        for text in [
            "SELECT * FROM books",
            "/*bywash-request='x'*/ select 1;",
            "-- first\n  SELECT 1",
            "(SELECT 1) UNION (SELECT 2)",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "VALUES (1), (2)",
            "TABLE books",
            "SHOW STATUS",
            "EXPLAIN SELECT 1",
            "SELECT * FROM books WHERE title LIKE '%update; delete for %'",
            "SELECT 'it''s for you', \"for\", `into` FROM books",
            "SELECT * FROM books WHERE id = $1 AND price < $2",
            "SELECT förlag FROM books",
            "SELECT /* a * / b */ 1 /**/",
            "SELECT 1 /*/ for */",
        ] {
            assert!(only_reads(text), "{text}");
        }
    }

    #[test]
    fn what_may_write_is_taken_for_a_write() {
        for text in [
            "",
            "UPDATE books SET price = 1",
            "INSERT INTO a SELECT 1",
            "DELETE FROM a",
            "CALL p()",
            "DO $$ BEGIN END $$",
            "COPY a TO STDOUT",
            "SELECT * FROM a FOR UPDATE",
            "SELECT * FROM a FOR NO KEY UPDATE",
            "select * from a lock in share mode",
            "SELECT * INTO b FROM a",
            "SELECT 1 INTO OUTFILE '/tmp/a'",
            "WITH gone AS (DELETE FROM a RETURNING *) SELECT * FROM gone",
            "EXPLAIN ANALYZE UPDATE a SET b = 1",
            "SELECT 1; DELETE FROM a",
            "/*! DELETE FROM a */",
            "/*!50000 DELETE */ FROM a",
            "SELECT 1 /*M! INTO OUTFILE 'x' */",
            "SELECT 'unfinished",
            "# first\nSELECT 1",
            r"SELECT 'a\'b' FROM books",
            "SELECT d #>> '{x}' FROM books FOR UPDATE",
            "WITH s AS (SELECT d #> '{x}' FROM a) DELETE FROM b",
            "SELECT a--1, b FROM books FOR UPDATE",
            r"SELECT '\'; DELETE FROM d WHERE d='' --'",
            "SELECT $$'$$, a FROM books FOR UPDATE -- '",
            "SELECT $a$ for $a$",
            "SELECT 1 /* unfinished",
            "SELECT 1 /* a /* b */ ' */; DELETE FROM t WHERE a='1'",
            "SELECT 1 /* a /* b */",
            "SELECT 1 /* a /*/ FROM b */",
            "BEGIN",
            "COMMIT",
            "SET a = 1",
        ] {
            assert!(!only_reads(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(text in ".{0,200}") {
            let _ = (query_tags(&text), only_reads(&text));
        }

        #[test]
        fn what_stands_in_a_literal_changes_nothing(words in "[^'\\\\]{0,60}") {
            let text = format!("SELECT * FROM a WHERE b = '{words}'");
            prop_assert!(only_reads(&text));
        }
    }
}
