//! A scenario with some of its keys changed, for `lab sweep` and for the runs of a paper.
//!
//! A key is changed in the TOML table, before the scenario is resolved. Every key that a scenario
//! file can have can therefore be changed, including keys that the file omits. A new key needs no
//! code here. Classes and policies are addressed by name instead of index:
//! `class.main.service.mean`, `policy.session-first.capacity` (a policy by its label, or by its
//! name if it has none).

use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use toml::{Table, Value};

use crate::error::ScenarioError;
use crate::file::Scenario;
use crate::lines::Lines;
use crate::{base, raw};

/// A key of a scenario file and its new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The dotted name of the key, such as `client.patience.mean`.
    pub key: String,
    /// The value as it would be written in the file. A text may omit its quotes.
    pub value: String,
}

/// Keys whose value is a list. A single value for such a key becomes a list with one element.
const LISTS: [&str; 3] = ["rho", "closes", "requires"];

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        let [key, value] = [key, value].map(|part| part.trim().to_owned());
        if key.split('.').any(str::is_empty) || value.is_empty() {
            return Err(format!("`{text}`: write KEY=VALUE, as in client.patience.mean=20s"));
        }
        Ok(Self { key, value })
    }
}

impl Scenario {
    /// Parses a scenario file in which the keys of `settings` are changed, in their order.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Scenario::parse`]. Also fails for a setting that names an unknown
    /// key, or for a value of the wrong type; the error names the setting.
    pub fn parse_with(
        text: &str,
        folder: &Path,
        settings: &[Setting],
    ) -> Result<Self, ScenarioError> {
        // Parse the unchanged file first, because its own errors have a line and a column.
        let mut file = base::read(text, folder)?;
        let mut table = base::whole(text, folder)?;
        for setting in settings {
            let wrong = |why: String| {
                let why = why.trim_end();
                ScenarioError::Invalid(format!("{} = {}: {why}", setting.key, setting.value))
            };
            set(&mut table, setting).map_err(wrong)?;
            let changed = raw::File::deserialize(Value::Table(table.clone()));
            file = changed.map_err(|error| wrong(guessed(error.message())))?;
        }
        let names = || settings.iter().map(|set| format!("{} = {}", set.key, set.value));
        // A value that a setting changed has no line in the file.
        let lines = if settings.is_empty() { Lines::of(text) } else { Lines::default() };
        raw::resolve(file, folder, &lines).map_err(|error| match error {
            ScenarioError::Invalid(why) if !settings.is_empty() => {
                let names: Vec<String> = names().collect();
                ScenarioError::Invalid(format!("with {}: {why}", names.join(", ")))
            }
            other => other,
        })
    }
}

fn set(table: &mut Table, setting: &Setting) -> Result<(), String> {
    let mut path: Vec<&str> = setting.key.split('.').collect();
    let last = path.pop().unwrap_or_default();
    let table = descend(table, &path)?;
    let mut value = value(&setting.value);
    if LISTS.contains(&last) && !value.is_array() {
        value = Value::Array(vec![value]);
    }
    base::remove_excluded(last, table);
    table.insert(last.to_owned(), value);
    Ok(())
}

/// Returns the table at `path`, and creates the table if it is missing. The structs of the scenario
/// file decide later whether the table may exist.
fn descend<'t>(table: &'t mut Table, path: &[&str]) -> Result<&'t mut Table, String> {
    let Some((first, rest)) = path.split_first() else { return Ok(table) };
    match table.entry(*first).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(inside) => descend(inside, rest),
        Value::Array(list) => {
            let Some((name, rest)) = rest.split_first() else {
                return Err(format!("name the {first}: write {first}.NAME.KEY"));
            };
            descend(named(list, first, name)?, rest)
        }
        _ => Err(format!("`{first}` has no keys of its own")),
    }
}

/// Returns the class or policy called `name` in `list`. Fails if there is none.
fn named<'t>(list: &'t mut [Value], kind: &str, name: &str) -> Result<&'t mut Table, String> {
    let known: Vec<String> = list.iter().filter_map(name_of).collect();
    let index = known.iter().position(|known| known == name);
    let Some(index) = index.filter(|_| known.len() == list.len()) else {
        let head = format!("there is no {kind} `{name}`");
        let list = || format!("{head}; the names are {}", known.join(", "));
        return Err(meant(&head, name, known.iter().map(String::as_str)).unwrap_or_else(list));
    };
    list[index].as_table_mut().ok_or_else(|| format!("`{kind}` is not a list of tables"))
}

fn name_of(entry: &Value) -> Option<String> {
    let name = entry.get("label").or_else(|| entry.get("name"))?;
    name.as_str().map(ToOwned::to_owned)
}

/// Parses `text` as a TOML value. Any other text becomes a string.
fn value(text: &str) -> Value {
    let parsed = toml::from_str::<Table>(&format!("value = {text}"));
    let parsed = parsed.ok().filter(|table| table.len() == 1).and_then(|mut t| t.remove("value"));
    parsed.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Replaces the list in «unknown field `x`, expected one of `a`, `b`» with the name that was
/// probably meant.
fn guessed(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match (message.split_once(", expected"), quoted.split_first()) {
        (Some((head, _)), Some((given, known))) if head.starts_with("unknown field") => {
            meant(head, given, known.iter().copied()).unwrap_or_else(|| message.to_owned())
        }
        _ => message.to_owned(),
    }
}

fn meant<'n>(head: &str, given: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    guess(given, known).map(|best| format!("{head}; did you mean `{best}`?"))
}

/// Returns the name in `known` that was probably meant by `given`; `None` if no name is similar
/// enough.
pub fn guess<'n>(given: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    // The same threshold as in the gateway's own configuration.
    const ALIKE: f64 = 0.8;
    let scored = known.map(|known| (strsim::jaro_winkler(given, known), known));
    let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(alike, _)| *alike >= ALIKE).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use bywash_units::TimeSpan;

    use super::*;
    use crate::client::Closes;
    use crate::distribution::Distribution;
    use crate::file::{Length, tests::SMALL};

    const POLICIES: &str = "\n[[policy]]\nname = \"session-first\"\n\
                            [[policy]]\nname = \"single-queue\"\nlabel = \"SQ\"\n";

    fn with(settings: &[&str]) -> Result<Scenario, String> {
        let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
        let text = format!("{SMALL}{POLICIES}");
        Scenario::parse_with(&text, Path::new("."), &settings).map_err(|error| error.to_string())
    }

    #[test]
    fn every_kind_of_key_can_be_set_also_those_that_the_file_leaves_out() {
        let scenario = with(&[
            "servers.workers=7",
            "client.patience={ mean = \"20s\", shape = \"constant\" }",
            "client.patience.mean=3s",
            "client.closes=hidden",
            "client.retries_after_refusal=0",
            "class.buy.utility=7.5",
            "class.main.next.buy=0.2",
            "run.rho=2",
            "run.seeds=3",
            "policy.session-first.capacity=30",
            "policy.SQ.order=lifo",
        ]);
        let scenario = scenario.unwrap();
        assert_eq!((scenario.workers, scenario.seeds), (7, 3));
        assert_eq!(scenario.client.patience, Distribution::Constant(TimeSpan::from_secs(3)));
        assert_eq!((scenario.closes, scenario.rho), (vec![Closes::Hidden], vec![2.0]));
        assert_eq!(scenario.client.retries_after_refusal, 0);
        assert!((scenario.classes[1].utility.get() - 7.5).abs() < 1e-12);
        assert!(scenario.graph.next[0].contains(&(1, 0.2)));
        assert_eq!(scenario.policies[0].parameters["capacity"], "30");
        assert_eq!(scenario.policies[1].parameters["order"], "lifo");
    }

    #[test]
    fn a_length_replaces_the_other_kind_of_length() {
        let scenario = with(&["run.orders=70"]).unwrap();
        assert_eq!(scenario.length, Length::Orders(70));
    }

    #[test]
    fn keys_that_only_the_base_has_can_be_set() {
        let lab =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../papers/1-lifo-pri/scenarios");
        let over = "base = \"paper-1.toml\"\nname = \"over\"\n[run]\nseeds = 2\n";
        let settings = ["class.main.utility=28", "run.seeds=4"].map(|text| text.parse().unwrap());
        let scenario = Scenario::parse_with(over, &lab, &settings).unwrap();
        assert!((scenario.classes[0].utility.get() - 28.0).abs() < 1e-12);
        assert_eq!((scenario.name.as_str(), scenario.seeds), ("over", 4));
    }

    #[test]
    fn what_is_set_wrongly_is_named_with_what_was_probably_meant() {
        for (setting, words) in [
            ("client.retires=3", "client.retires = 3: unknown field `retires`"),
            ("client.retires=3", "did you mean `retries`?"),
            ("clint.retries=3", "did you mean `client`?"),
            ("class.mainly.utility=1", "there is no class `mainly`; did you mean `main`?"),
            ("class.moon.utility=1", "there is no class `moon`; the names are main, buy"),
            ("class.utility=1", "name the class: write class.NAME.KEY"),
            ("policy.session-fist.capacity=1", "did you mean `session-first`?"),
            ("servers.workers.count=1", "`workers` has no keys of its own"),
            ("servers.workers=many", "expected u32"),
            ("servers.workers=0", "with servers.workers = 0: servers.workers must be 1 to 100000"),
            ("client.patience.mean=20", "client.patience.mean = 20: "),
            ("client.patience.shape=flat", "unknown variant `flat`"),
        ] {
            let error = with(&[setting]).unwrap_err();
            assert!(error.contains(words), "{setting}: {error}");
        }
    }

    #[test]
    fn a_setting_is_a_key_and_a_value() {
        for text in ["", "=", "a", "a=", "=1", "a..b=1", ".a=1"] {
            assert!(text.parse::<Setting>().is_err(), "{text:?}");
        }
        let setting: Setting = " a.b = x=y ".parse().unwrap();
        assert_eq!((setting.key.as_str(), setting.value.as_str()), ("a.b", "x=y"));
    }
}
