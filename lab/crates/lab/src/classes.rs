//! Converts a scenario's classes into the configuration that an operator would write for each
//! gateway.
//!
//! bywash's configuration has a table for each class, and the configurations of the other gateways
//! only have paths. All gateways get the same information: the paths of the checkout, and which of
//! its steps has the highest utility.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use bywash_scenario::{Class, Scenario, Shown, Signal, Tier};
use bywash_units::Utility;

/// Returns the class tables of bywash's configuration as TOML.
pub(crate) fn toml(scenario: &Scenario) -> String {
    let mut text = String::new();
    for class in &scenario.classes {
        let requires: Vec<&str> =
            class.requires.iter().map(|i| scenario.classes[*i].name.as_str()).collect();
        add(&mut text, class, &requires);
    }
    text
}

/// Returns the names by which bywash's configuration refers to the scenario's signals.
pub(crate) fn signals(scenario: &Scenario) -> Vec<String> {
    let written = |signal: &Signal| match &signal.shown {
        Shown::Cookie { name, value } => format!("cookie:{name}={value}"),
        Shown::Header { name, .. } => format!("header:{name}"),
    };
    scenario.signals.iter().map(written).collect()
}

/// Returns the conditions by which `HAProxy` recognises the scenario's signals.
///
/// # Errors
/// Fails if a signal contains a quote, which would end the quoted condition.
pub(crate) fn haproxy_conditions(scenario: &Scenario) -> Result<Vec<String>, String> {
    let test = |signal: &Signal| {
        let (sample, value) = match &signal.shown {
            Shown::Cookie { name, value } => (format!("req.cook({name})"), value),
            Shown::Header { name, value } => (format!("req.hdr({name})"), value),
        };
        if sample.contains('\'') || value.contains('\'') {
            return Err(format!(
                "signal `{}`: it has a quote ('), which cannot stand in HAProxy's condition",
                signal.name
            ));
        }
        Ok(format!("'{sample}' -m str -- '{value}'"))
    };
    scenario.signals.iter().map(test).collect()
}

fn add(text: &mut String, class: &Class, requires: &[&str]) {
    let tier = match class.tier {
        Tier::Transaction => "transaction",
        Tier::Browsing => "browsing",
    };
    // Writing to a string cannot fail. The debug format is right here, because a list of strings
    // has the same syntax in Rust and in TOML.
    let _ = writeln!(
        text,
        "[class.{}]\nmatch = [\"{} {}\"]\ntier = \"{tier}\"\nutility = {}\nrequires = {requires:?}",
        class.name,
        class.method,
        path(class),
        class.utility.get(),
    );
    if class.revenue > Utility::default() {
        let _ = writeln!(text, "revenue = {}", class.revenue.get());
    }
}

/// Returns the path of a class without its query.
fn path(class: &Class) -> &str {
    class.path.split('?').next().unwrap_or_default()
}

/// Returns the paths of the checkout. The path of the class with the highest utility comes first.
///
/// # Errors
/// Fails if there is no checkout, or if a path would need escapes in the configuration of some
/// peer.
pub(crate) fn checkout(scenario: &Scenario) -> Result<Vec<&str>, String> {
    let of = |tier| scenario.classes.iter().filter(move |class| class.tier == tier);
    let mut steps: Vec<&Class> = of(Tier::Transaction).collect();
    steps.sort_by(|a, b| b.utility.get().total_cmp(&a.utility.get()));
    let looks: BTreeSet<&str> = of(Tier::Browsing).map(path).collect();
    let mut paths: Vec<&str> = Vec::new();
    for step in steps.into_iter().map(path) {
        if !step.starts_with('/') || !step.chars().all(is_plain) {
            return Err(format!(
                "path `{step}`: use only letters, digits and /-_.~, which mean the same to every \
                 peer"
            ));
        }
        if looks.contains(step) {
            return Err(format!(
                "path `{step}` belongs to classes of both tiers, and most peers distinguish only \
                 paths"
            ));
        }
        if !paths.contains(&step) {
            paths.push(step);
        }
    }
    if paths.is_empty() { Err("no class has tier = \"transaction\"".into()) } else { Ok(paths) }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/-_.~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers() -> Scenario {
        let text = include_str!("../../../scenarios/peers.toml");
        Scenario::parse(text, std::path::Path::new(".")).unwrap()
    }

    #[test]
    fn the_checkout_is_told_from_its_end() {
        let scenario = peers();
        let paths = checkout(&scenario).unwrap();
        assert_eq!(paths, ["/confirm", "/payment", "/shipping", "/login"]);
    }

    #[test]
    fn what_would_be_another_line_in_a_peers_configuration_is_refused() {
        for path in ["/a b", "/a\nbind *:80", "/a;", "/a\"", "/{a}", "confirm", ""] {
            let mut scenario = peers();
            scenario.classes[7].path = path.into();
            assert!(checkout(&scenario).is_err(), "{path:?}");
        }
        let mut scenario = peers();
        scenario.classes[7].path = "/browse?buy=1".into();
        assert!(checkout(&scenario).unwrap_err().contains("belongs to classes of both tiers"));
        scenario.classes.iter_mut().for_each(|class| class.tier = Tier::Browsing);
        assert!(checkout(&scenario).unwrap_err().contains("transaction"));
    }

    #[test]
    fn a_class_is_a_table_with_its_method_and_path() {
        let text = toml(&peers());
        let search =
            "[class.search]\nmatch = [\"GET /search\"]\ntier = \"browsing\"\nutility = 36\n";
        assert!(text.contains(search), "{text}");
        assert!(text.contains("requires = [\"payment\"]\nrevenue = 1\n"), "{text}");
        assert_eq!(text.matches("revenue").count(), 1, "{text}");
        assert_eq!(signals(&peers()), ["cookie:returning=1"]);
    }

    #[test]
    fn a_signal_cannot_end_the_quote_that_it_stands_in() {
        let mut scenario = peers();
        assert_eq!(haproxy_conditions(&scenario).unwrap(), ["'req.cook(returning)' -m str -- '1'"]);
        for shown in [
            Shown::Header { name: "from".into(), value: "it's".into() },
            Shown::Cookie { name: "it's".into(), value: "1".into() },
        ] {
            scenario.signals[0].shown = shown;
            assert!(haproxy_conditions(&scenario).unwrap_err().contains("signal `returning`"));
        }
    }
}
