//! Tests of `bywash lab paper`, which prints a paper's figures next to those of bywash.

use crate::binary::bywash;
use crate::folder::Folder;

#[test]
fn every_figure_of_paper_1_holds_or_is_off_for_a_reason_that_shows() {
    let folder = Folder::new();
    let report = folder.path("out/paper.html");
    let outcome = bywash(&["lab", "paper", "1", "--json", "--report", &report]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let paper = outcome.json();
    assert_eq!(paper["kept"], true);
    let figures = paper["figures"].as_array().unwrap();
    let with = |verdict: &str| figures.iter().filter(|figure| figure["verdict"] == verdict).count();
    assert_eq!(with("holds") + with("explained"), figures.len());
    // Most figures must agree with the paper, instead of being explained deviations.
    assert!(with("holds") >= 4 * with("explained"), "{} hold", with("holds"));
    for figure in figures {
        assert_eq!(figure["reason"].is_string(), figure["verdict"] == "explained", "{figure}");
    }
    let claims = ["1.1", "1.2", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9", "1.10"];
    for claim in claims {
        assert!(figures.iter().any(|figure| figure["claim"] == claim), "{claim}");
    }
    let html = std::fs::read_to_string(report).unwrap();
    assert!(html.contains("Promise kept.") && html.contains("Response times at ρ = 1.15"));
}

#[test]
fn every_figure_of_paper_2_holds_or_is_off_for_a_reason_that_shows() {
    // With memoryless service times, few figures can agree: docs/papers/2-sert.md.
    all_hold_or_say_why("2", [3, 2], &["2.1", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9"]);
}

#[test]
fn every_figure_of_paper_4_holds_or_is_off_for_a_reason_that_shows() {
    // The paper's database worked on several requests at a time, the simulated one works on one:
    // docs/papers/4-connection-sentry.md.
    all_hold_or_say_why("4", [2, 1], &["4.7", "4.8", "4.9", "4.10", "4.11"]);
}

#[test]
fn every_figure_of_paper_5_holds_or_is_off_for_a_reason_that_shows() {
    // The paper's clients cannot have behaved as the paper describes: docs/papers/5-selfman.md.
    all_hold_or_say_why("5", [2, 1], &["5.3", "5.6", "5.7", "5.8"]);
}

#[test]
fn a_paper_that_is_not_there_is_misuse() {
    for (args, words) in [
        (&["9"][..], "there is no paper 9; the papers are 1, 2"),
        (&["one"], "invalid digit"),
        (&["1", "--report", "/"], "folder"),
        (&[], "NUMBER"),
    ] {
        let outcome = bywash(&[&["lab", "paper"], args].concat());
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{args:?}: {outcome:?}");
        assert!(outcome.err.contains(words), "{args:?}: {}", outcome.err);
    }
}

/// Asserts that at least the fraction `of_all` / `holding` of the figures agrees with the paper.
/// Also asserts that each claim in `claims` has a figure.
fn all_hold_or_say_why(seed: &str, [holding, of_all]: [usize; 2], claims: &[&str]) {
    let outcome = bywash(&["lab", "paper", seed, "--json"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let paper = outcome.json();
    assert_eq!(paper["kept"], true);
    let figures = paper["figures"].as_array().unwrap();
    let holds = figures.iter().filter(|figure| figure["verdict"] == "holds").count();
    assert!(holding * holds >= of_all * figures.len(), "{holds} of {}", figures.len());
    for claim in claims {
        assert!(figures.iter().any(|figure| figure["claim"] == *claim), "{claim}");
    }
}
