//! Part three of the demo, for users who stay: a shop with normal load, a crawler that requests the
//! shop's most expensive page, and an operator.
//!
//! The gateway decides nothing automatically. The crawler takes six of eight workers. Within half a
//! minute the console shows the crawler's route as an elephant (a route that causes much of the
//! load). A rule for that route frees the workers for the visitors.

use std::path::Path;

use bywash_command::Failure;
use bywash_command::streams::say;
use bywash_control::{Note, Subject, What};
use bywash_load::Options;
use bywash_scenario::{Profile, Scenario};
use bywash_terminal::text::escaped;

use super::shop_side::ShopSite;
use super::side::{Side, at_once};

pub(super) const CRAWLER: &str = include_str!("../../../../scenarios/demo-crawler.toml");

/// The offered load of the visitors, as a fraction of the shop's capacity.
const CALM: f64 = 0.6;

/// Runs visitors and crawler until the user interrupts, or for half an hour.
pub(super) fn run(
    crowd: &Scenario,
    crawler: &Scenario,
    side: &Side<ShopSite>,
    link: &str,
) -> Result<(), Failure> {
    side.looks_for_elephants()?;
    let calm = Scenario { profile: Profile::Poisson, length: crawler.length, ..crowd.clone() };
    say(format!(
        "\n3. The shop behind bywash stays open. A crawler now requests sorted searches, the\n   \
         most expensive page, six at a time, and visitors wait behind it. The console:\n\n     \
         {link}\n\n   \
         After about ten seconds it asks for a decision. \"Decide\" shows what bywash has\n   \
         found. Approve the rule. Half a minute later the page shows how the other requests\n   \
         gain. Then undo the rule, and see the visitors wait again.\n\n   \
         Ctrl-C closes the shop and prints your decisions. It closes after half an hour.\n",
    ));
    at_once(|| play(crawler, &side.options(1.0, 2)), || play(&calm, &side.options(CALM, 3)))
        .map(drop)
}

/// Prints the decisions that people have made during part three.
pub(super) fn print_decisions(state: &Path) {
    let decisions = decisions(state);
    if !decisions.is_empty() {
        say(decisions);
    }
}

/// Returns the decisions that people have recorded in the audit log in `state`, as text.
fn decisions(state: &Path) -> String {
    // If the audit log does not exist, nobody has made a decision.
    let lines = std::fs::read_to_string(state.join("audit.jsonl")).unwrap_or_default();
    let notes = lines.lines().filter_map(|line| serde_json::from_str::<Note>(line).ok());
    let decisions: Vec<String> = notes.filter_map(|note| describe_decision(&note)).collect();
    if decisions.is_empty() {
        return String::new();
    }
    format!("\nDecided:\n  {}", decisions.join("\n  "))
}

/// Returns the line to print when a decision or an event happens; `None` if none is printed.
pub(super) fn describe(note: &Note) -> Option<String> {
    let Subject::Elephant { pattern, .. } = &note.subject else { return describe_decision(note) };
    let pattern = escaped(pattern);
    match note.what {
        What::Proposed => Some(format!(
            "bywash found that requests for {pattern} cause much of the load, and proposes a rule"
        )),
        What::Ended => Some(format!("the decision on {pattern} has ended")),
        _ => describe_decision(note),
    }
}

/// Returns the line for a person's decision; `None` for an automatic event.
fn describe_decision(note: &Note) -> Option<String> {
    let of = match &note.subject {
        Subject::Elephant { pattern, .. } => escaped(pattern),
        Subject::Class { class, mode, enforce_percent } => {
            format!("class {}, {} for {enforce_percent} %", escaped(class), mode.name())
        }
        Subject::Population { .. } => note.subject.shown(),
        Subject::Bypass => "the bypass".into(),
        Subject::File => return None,
    };
    let what = match note.what {
        What::Approved => "approved a rule for",
        What::Tried => "tried a rule for",
        What::Rejected => "rejected the rule for",
        What::Overridden => "overrode",
        What::Undone => "undid the decision on",
        What::Proposed | What::Asked | What::Ended | What::Reloaded => return None,
    };
    let [by, why] = [&note.by, &note.why].map(|text| escaped(text));
    Some(format!("{by} {what} {of}: {why}"))
}

fn play(scenario: &Scenario, options: &Options) -> Result<(), Failure> {
    bywash_load::run(scenario, options, &mut |_| ()).map(drop).map_err(Failure::running)
}

#[cfg(test)]
mod tests {
    use bywash_control::{Act, Change, DecisionMeta, RuleStore, Timestamp};
    use bywash_units::TimeSpan;

    use super::super::scenario;
    use super::*;

    #[test]
    fn the_crawler_takes_most_of_the_shop_and_its_visitors_the_rest() {
        let crawler = scenario(CRAWLER).unwrap();
        assert_eq!(crawler.sets.len(), 1);
        assert_eq!((crawler.sets[0].clients, crawler.workers), (6, 8));
    }

    #[test]
    fn what_people_decided_is_said_at_the_end_and_what_was_found_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(decisions(folder.path()), "");
        let mut store = RuleStore::default();
        let now = Timestamp::UNIX_EPOCH;
        let found = serde_json::from_value(serde_json::json!({
            "pattern": "/search?sort", "twins": [], "resource": "slots", "capacity": 8.0, "used": 1.0, "cost": 0.3,
            "interval": [0.3, 0.3], "share": 0.7, "rate": 18.0, "provisional": false, "by_one": 0.2,
            "transacts": false, "correlation": null
        }))
        .unwrap();
        let mut notes = store.found(now, vec![found], Act::Propose);
        let meta = DecisionMeta {
            by: "ana".into(),
            why: "a crawler".into(),
            lasts: TimeSpan::from_secs(60),
        };
        notes.push(store.approve(now, 1, Change::default(), meta).unwrap());
        let described: Vec<String> = notes.iter().filter_map(describe).collect();
        assert_eq!(
            described,
            [
                "bywash found that requests for /search?sort cause much of the load, and proposes \
                 a rule",
                "ana approved a rule for /search?sort: a crawler"
            ]
        );
        let lines: Vec<String> =
            notes.iter().map(|note| serde_json::to_string(note).unwrap()).collect();
        std::fs::write(folder.path().join("audit.jsonl"), lines.join("\n")).unwrap();
        let decisions = decisions(folder.path());
        assert!(
            decisions.ends_with("  ana approved a rule for /search?sort: a crawler"),
            "{decisions:?}"
        );
        assert_eq!(decisions.lines().count(), 3, "what was found is nobody's meta: {decisions:?}");
    }
}
