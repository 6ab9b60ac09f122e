//! Tests that the page escapes all its input, that its HTML is well-formed, and that the verdict
//! comes first.

use super::*;
use crate::figure::{Bars, bars};

const HOSTILE: &str = "\"><script>alert('1')</script>\u{202e}<img src=x onerror=alert(1)>";

fn hostile() -> Report {
    let mut table = Table::new(&[(HOSTILE, Align::Left), ("n", Align::Right)]);
    table.push(vec![HOSTILE.into(), "1".into(), "beyond the heading".into()]);
    table.push(vec![]);
    let figure = || {
        bars(&Bars {
            title: HOSTILE.into(),
            groups: vec![(HOSTILE.into(), vec![1.0])],
            ..Bars::default()
        })
    };
    Report {
        title: HOSTILE.into(),
        verdict: Some(Verdict { kept: false, line: HOSTILE.into() }),
        environment: vec![(HOSTILE.into(), HOSTILE.into())],
        command: format!("one\n{HOSTILE}"),
        sections: vec![Section {
            heading: HOSTILE.into(),
            prose: format!("first\nline\n\n{HOSTILE}"),
            body: vec![
                Block::Table(table.clone()),
                Block::Figure(figure()),
                Block::Text(HOSTILE.into()),
                Block::Warning(HOSTILE.into()),
                Block::Details {
                    summary: HOSTILE.into(),
                    body: vec![Block::Table(table), Block::Figure(figure())],
                },
            ],
        }],
    }
}

/// Returns the names of the elements that `html` opens and closes, in order.
fn tags(html: &str) -> Vec<String> {
    let named = |rest: &str| {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '/')).unwrap_or(rest.len());
        rest[..end].to_owned()
    };
    html.split('<').skip(1).map(named).collect()
}

#[test]
fn whatever_others_wrote_is_text() {
    let html = hostile().html();
    for tag in tags(&html) {
        assert!(!["script", "img", "iframe", "link"].contains(&tag.as_str()), "{tag}");
    }
    assert!(html.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;\u{fffd}"));
    assert!(!html.contains("\u{202e}") && !html.contains('\u{1}'));
}

#[test]
fn every_element_is_closed_in_order() {
    let html = hostile().html();
    let (head, body) = html.split_once("</head>").unwrap();
    assert!(head.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
    let empty = ["line", "rect", "path"];
    let mut open: Vec<String> = Vec::new();
    for tag in tags(body) {
        if let Some(closed) = tag.strip_prefix('/') {
            if closed != "html" {
                assert_eq!(open.pop().as_deref(), Some(closed));
            }
        } else if !empty.contains(&tag.as_str()) {
            open.push(tag);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_page_forbids_scripts_and_requests_and_makes_none() {
    let html = hostile().html();
    assert!(html.contains(
        "<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    ));
    for request in ["src=\"", "href=\"", "@import", "url(http", "url(\""] {
        assert!(!html.contains(request), "{request}");
    }
}

#[test]
fn the_verdict_comes_first_and_says_so_in_words() {
    let html = hostile().html();
    let place = |part: &str| html.find(part).unwrap();
    assert!(place("Promise not kept.") < place("<dl>"));
    assert!(place("<dl>") < place("<pre"));
    assert!(place("<pre") < place("<h2>"));
    let kept =
        Report { verdict: Some(Verdict { kept: true, line: "x".into() }), ..Report::default() };
    assert!(kept.html().contains("verdict kept\"><strong>✓ Promise kept.</strong> x</p>"));
    assert!(!Report::default().html().contains("<strong>"));
}

#[test]
fn a_table_keeps_its_columns_whatever_the_length_of_its_rows() {
    let html = hostile().html();
    for row in html.split("<tr>").skip(1) {
        let (row, _) = row.split_once("</tr>").unwrap();
        assert_eq!(row.matches("</t").count(), 2, "{row}");
    }
    assert!(!html.contains("beyond the heading"));
    assert!(html.contains("<td class=\"number\">1</td>"));
}

#[test]
fn the_file_appears_whole_or_not_at_all() {
    let folder = std::env::temp_dir().join(format!("bywash-report-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("r.html");
    for title in ["first", "second"] {
        write(&path, &Report { title: title.into(), ..Report::default() }).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap().contains("<h1>second</h1>"));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
    // A folder already exists at the report's path.
    assert!(write(&folder, &Report::default()).is_err());
    assert!(write("/", &Report::default()).is_err());
    std::fs::remove_dir_all(&folder).unwrap();
}
