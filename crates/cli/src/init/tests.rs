//! Tests that each preset assigns real requests to the intended classes. The file
//! `requests/NAME.txt` has the requests for the preset NAME. Each line has a request and its class.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use bywash_config::{Config, Severity};
use bywash_engine::classify::{HasField, RequestParts};

use super::*;

fn parsed(name: &str, toml: &str) -> Config {
    let (config, warnings) = Config::parse(toml, name)
        .unwrap_or_else(|problems| panic!("{name}: {}", problems.render(false)));
    assert_eq!(warnings.count(Severity::Warning), 0, "{name}: {}", warnings.render(false));
    config
}

/// Returns the requests for a preset: the method, the target and the class of each.
fn requests(name: &str) -> Vec<[String; 3]> {
    let path = format!("{}/src/init/requests/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let three = |line| words(line).try_into().unwrap_or_else(|_| panic!("{path}: {line}"));
    text.lines().filter(|line| !line.is_empty()).map(three).collect()
}

#[test]
fn each_preset_puts_requests_of_its_application_into_one_class() {
    for (name, preset) in PRESETS {
        let config = parsed(name, &file(preset, "http://127.0.0.1:3000", None));
        let name_of =
            |id: bywash_engine::ClassId| config.classes[usize::from(id.0)].class.name.clone();
        let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
        for [method, target, class] in requests(name) {
            let classes = config.classifier.classes(&RequestParts::new(&method, &target));
            let found: Vec<String> = classes.iter().map(name_of).collect();
            if found != [class.as_str()] {
                wrong.push(format!("{method} {target} is {}, not {class}", found.join(" or ")));
            }
            seen.insert(class);
        }
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        // The test's requests have no header fields, which the class `disguised` needs.
        if matches!(name, "wordpress" | "woocommerce") {
            seen.insert("disguised".to_owned());
        }
        let all: BTreeSet<String> =
            config.classes.iter().map(|class| class.class.name.clone()).collect();
        assert_eq!(seen, all, "{name}: each class has a request");
    }
}

#[test]
fn parameters_of_another_page_do_not_raise_a_search() {
    for (name, method, target, class) in [
        ("wordpress", "GET", "/wp-json/wp/v2/posts?_method=GET&search=overload", "machine"),
        ("woocommerce", "GET", "/?wc-ajax=get_refreshed_fragments&s=hat", "search"),
        ("woocommerce", "POST", "/?wc-ajax=add_to_cart&s=hat", "machine"),
        ("woocommerce", "GET", "/shop/?add-to-cart=12&s=hat", "search"),
        ("woocommerce", "GET", "/cart/?pagename=&s=hat", "machine"),
        ("mediawiki", "GET", "/w/index.php?action=edit&search=canal", "heavy"),
        ("mediawiki", "GET", "/w/index.php?veaction=edit&diff=12", "heavy"),
        ("mediawiki", "POST", "/w/index.php?title=Special:Log&action=submit", "posted"),
    ] {
        let (_, preset) = PRESETS.iter().find(|(known, _)| *known == name).unwrap();
        let config = parsed(name, &file(preset, "http://127.0.0.1:3000", None));
        let classes = config.classifier.classes(&RequestParts::new(method, target));
        let lowest = &config.classes[config.lowest(classes).index()].class.name;
        assert_eq!(lowest, class, "{name}: {method} {target}");
    }
}

/// The header fields of a request that has a single field: its name and its value.
struct Only(&'static str, &'static str);

impl HasField for Only {
    fn has(&self, name: &str, is_value: &dyn Fn(&[u8]) -> bool) -> bool {
        name == self.0 && is_value(self.1.as_bytes())
    }
}

#[test]
fn a_post_that_a_field_turns_into_a_get_is_no_change_by_an_editor() {
    for name in ["wordpress", "woocommerce"] {
        let (_, preset) = PRESETS.iter().find(|(known, _)| *known == name).unwrap();
        let config = parsed(name, &file(preset, "http://127.0.0.1:3000", None));
        assert_eq!(config.listen.pass_fields, ["x-http-method-override"], "{name}");
        for (method, is_disguised) in [("get", true), ("DELETE", false)] {
            let fields = Only("x-http-method-override", method);
            let asked = RequestParts::new("POST", "/wp-json/wp/v2/posts");
            let classes = config.classifier.classes(&RequestParts { fields: &fields, ..asked });
            let lowest = &config.classes[config.lowest(classes).index()].class.name;
            assert_eq!(lowest == "disguised", is_disguised, "{name}: {method} is {lowest}");
        }
    }
}

#[test]
fn a_form_that_is_shown_again_is_not_an_order() {
    let is_page = |statuses: &RangeInclusive<u16>| statuses.contains(&200);
    for (name, preset) in PRESETS {
        let config = parsed(name, &file(preset, "http://127.0.0.1:3000", None));
        for class in config.classes.iter().filter(|class| class.class.revenue.get() > 0.0) {
            let changes =
                |pattern: &String| !pattern.starts_with('/') && !pattern.starts_with("GET ");
            let statuses = &class.success.statuses;
            let redirects = !statuses.is_empty() && !statuses.iter().any(is_page);
            assert!(redirects || !class.patterns.iter().any(changes), "{name}");
        }
    }
}

#[test]
fn what_a_preset_offers_in_comments_is_right() {
    for (name, preset) in PRESETS {
        let toml = file(preset, "http://127.0.0.1:3000", None);
        let keys = ["cancellable = ", "revenue = ", "revenue_header = ", "success = "];
        let offered =
            keys.iter().fold(toml.clone(), |toml, key| toml.replace(&format!("# {key}"), key));
        assert_ne!(offered, toml, "{name} offers something");
        // A class that only observes does not inspect JSON in compressed answers (W143), so the
        // mode is changed.
        let offered = offered.replace("\nmode = \"observe\"\n", "\nmode = \"enforce\"\n");
        let config = parsed(name, &offered);
        let cancellable = config.classes.iter().filter(|class| class.class.stop.is_some()).count();
        assert_eq!(cancellable, 1, "{name}");
    }
}

#[test]
fn a_preset_has_the_server_that_it_is_given() {
    for (name, preset) in PRESETS {
        let toml = file(preset, "https://10.0.0.1:8443", None);
        let servers: Vec<&str> =
            toml.lines().filter(|line| line.starts_with("server = ")).collect();
        assert_eq!(servers, ["server = \"https://10.0.0.1:8443\""], "{name}");
    }
}

fn args(upstream: &str, workers: Option<u32>, cores: Option<u32>) -> Init {
    Init { preset: None, upstream: upstream.to_owned(), workers, cores, out: None, force: false }
}

#[test]
fn the_limit_follows_from_cores_and_workers() {
    let there = |workers, cores| limit(&args("http://10.0.0.1:3000", workers, cores));
    let slots = |workers, cores| there(workers, cores).map(|(slots, _)| slots);
    assert_eq!(slots(None, None), None);
    assert_eq!(slots(None, Some(2)), Some(4));
    assert_eq!(slots(Some(3), Some(2)), Some(3));
    assert_eq!(slots(Some(20), None), Some(20));
    assert_eq!(slots(Some(20), Some(2)), Some(4));
    for (name, preset) in PRESETS {
        let toml = file(preset, "http://10.0.0.1:3000", there(None, Some(2)));
        let limits: Vec<&str> = toml.lines().filter(|line| line.starts_with("limit = ")).collect();
        assert_eq!(limits, ["limit = 4"], "{name}");
    }
}
