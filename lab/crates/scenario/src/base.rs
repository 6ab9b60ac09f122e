//! Reads scenario files, including those that state only their differences from another file.
//!
//! A file of the latter kind begins with `base = "paper-1.toml"`, the path of its base relative to
//! the file itself. The file is merged into the base:
//!
//! - A table is merged key by key: `[run]` with only `seeds` keeps the other keys of the base. But
//!   a table with its own `shape` replaces the base's table, because the shape decides the meaning
//!   of the other keys.
//! - Any other value replaces that of the base. Arrays of tables (`[[class]]`, `[[policy]]`) are
//!   replaced as a whole.
//! - `duration` and `orders` exclude each other: setting one removes the other.
//!
//! A base has no base itself, so there are no cycles. An error in the base is reported with its
//! line in the base. If the base is valid, an error in the merged scenario is the fault of the file
//! that names the base, and only the key can be reported.

use std::path::Path;

use toml::{Table, Value};

use crate::error::ScenarioError;
use crate::file::Scenario;
use crate::lines::Lines;
use crate::raw::{self, File};
use crate::text::read_bounded;

impl Scenario {
    /// Reads and checks the scenario file at `path`.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        Self::parse(&Self::text(path)?, path.parent().unwrap_or(Path::new(".")))
    }

    /// Reads the text of a scenario file. Fails if the file is larger than a scenario can be.
    pub fn text(path: &Path) -> Result<String, ScenarioError> {
        read_bounded(path)
    }

    /// Parses the text of a scenario file. Relative paths in it, of its base and of its file of
    /// arrival times, are relative to `folder`.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, ScenarioError> {
        raw::resolve(read(text, folder)?, folder, &Lines::of(text))
    }
}

/// Parses the text of a scenario file, and merges it into its base if it names one.
pub(crate) fn read(text: &str, folder: &Path) -> Result<File, ScenarioError> {
    let whole = whole(text, folder)?;
    if toml::from_str::<Table>(text)?.contains_key("base") {
        return Ok(whole.try_into()?);
    }
    // Parse the text again, because errors of the merged table would have no line.
    Ok(toml::from_str(text)?)
}

/// Returns the table of a scenario file, merged into its base if it names one. The table's keys may
/// still be invalid.
pub(crate) fn whole(text: &str, folder: &Path) -> Result<Table, ScenarioError> {
    let mut over: Table = toml::from_str(text)?;
    let Some(base) = over.remove("base") else { return Ok(over) };
    let Value::String(base) = base else {
        return Err(senseless("base must be the path of a scenario file, in quotes"));
    };
    let path = folder.join(&base);
    let under = read_base(&path, Path::new(&base));
    let mut whole =
        under.map_err(|source| ScenarioError::Base { path, source: Box::new(source) })?;
    merge(over, &mut whole);
    Ok(whole)
}

/// Returns the table of the base at `path`, which the referring file calls `name`. Checks the base
/// as a scenario. Paths inside the base are made relative to the folder of the referring file.
fn read_base(path: &Path, name: &Path) -> Result<Table, ScenarioError> {
    let text = read_bounded(path)?;
    let mut table: Table = toml::from_str(&text)?;
    if table.contains_key("base") {
        return Err(senseless("a base cannot have a base itself: copy the keys that it needs"));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    raw::resolve(toml::from_str(&text)?, folder, &Lines::of(&text))?;
    let times = table.get_mut("arrivals").and_then(|arrivals| arrivals.get_mut("path"));
    if let (Some(Value::String(times)), Some(folder)) = (times, name.parent()) {
        // Both paths come from UTF-8 text, so the conversion loses nothing.
        *times = folder.join(&*times).to_string_lossy().into_owned();
    }
    Ok(table)
}

/// Keys that exclude each other: a table has at most one of them.
const EITHER: [&str; 2] = ["duration", "orders"];

/// Removes the keys from `table` that setting `key` excludes.
pub(crate) fn remove_excluded(key: &str, table: &mut Table) {
    if EITHER.contains(&key) {
        for key in EITHER {
            table.remove(key);
        }
    }
}

fn merge(over: Table, under: &mut Table) {
    over.keys().for_each(|key| remove_excluded(key, under));
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over)) if !over.contains_key("shape") => {
                merge(over, under);
            }
            (_, value) => drop(under.insert(key, value)),
        }
    }
}

fn senseless(why: &str) -> ScenarioError {
    ScenarioError::Invalid(why.into())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use bywash_units::TimeSpan;

    use crate::distribution::Distribution;
    use crate::file::{Length, Scenario};

    /// A temporary folder that is removed on drop.
    struct Folder(PathBuf);

    impl Folder {
        fn with(name: &str, files: &[(&str, &str)]) -> Self {
            let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
            for (file, text) in files {
                let path = folder.join(file);
                let parent = path.parent().expect("a file in a folder has a parent");
                std::fs::create_dir_all(parent).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Self(folder)
        }

        fn read(&self, file: &str) -> Result<Scenario, String> {
            Scenario::read(&self.0.join(file)).map_err(|error| error.to_string())
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const BASE: &str = r#"
        name = "base"
        [servers]
        workers = 2
        max_wait = "9s"
        [[class]]
        name = "main"
        request = "GET /"
        tier = "browsing"
        utility = 1
        service = { mean = "100ms", shape = "lognormal", cv = 2.0 }
        [session]
        start = "main"
        order = "main"
        [arrivals]
        shape = "pulse"
        base = 0.5
        at = "1s"
        lasts = "1s"
        [client]
        think = { mean = "1s", shape = "exponential" }
        patience = { mean = "20s", shape = "exponential" }
        [run]
        rho = [1.5]
        seeds = 3
        orders = 100
        [[policy]]
        name = "single-queue"
        [[policy]]
        name = "session-first"
    "#;

    #[test]
    fn what_a_file_does_not_say_is_as_in_its_base() {
        let over = r#"
            base = "../base.toml"
            name = "over"
            [servers]
            workers = 4
            [arrivals]
            shape = "poisson"
            [client]
            patience = { mean = "2s", shape = "constant" }
            [run]
            duration = "5s"
            [[policy]]
            name = "lifo-pri"
        "#;
        let folder =
            Folder::with("bywash-base-merged", &[("base.toml", BASE), ("in/o.toml", over)]);
        let scenario = folder.read("in/o.toml").unwrap();
        assert_eq!((scenario.name.as_str(), scenario.workers, scenario.seeds), ("over", 4, 3));
        assert_eq!(scenario.max_wait, Some(TimeSpan::from_secs(9)), "a table keeps its other keys");
        assert_eq!(scenario.profile, crate::Profile::Poisson, "a shape replaces its table");
        assert_eq!(scenario.client.patience, Distribution::Constant(TimeSpan::from_secs(2)));
        assert_eq!(scenario.length, Length::Duration(TimeSpan::from_secs(5)), "and not orders");
        assert_eq!(scenario.classes.len(), 1);
        let policies: Vec<&str> = scenario.policies.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(policies, ["lifo-pri"], "an array of tables is replaced");
    }

    #[test]
    fn a_base_finds_its_arrivals_beside_itself() {
        let base = BASE.replace("shape = \"pulse\"", "shape = \"file\"\n path = \"times\"");
        let base = base.replace("base = 0.5\n        at = \"1s\"\n        lasts = \"1s\"", "");
        let files = [
            ("far/base.toml", base.as_str()),
            ("far/times", "0.5\n1.5\n"),
            ("o.toml", "base = \"far/base.toml\"\nname = \"over\""),
        ];
        let scenario = Folder::with("bywash-base-times", &files).read("o.toml").unwrap();
        let crate::Profile::Times(times) = scenario.profile else { panic!("{scenario:?}") };
        assert_eq!(times.len(), 2);
    }

    #[test]
    fn a_mistake_is_said_of_the_file_that_it_is_in() {
        let broken = BASE.replace("workers = 2", "workforce = 2");
        let senseless = BASE.replace("start = \"main\"", "start = \"home\"");
        let chained = format!("base = \"base.toml\"\n{BASE}");
        let files = [
            ("base.toml", BASE),
            ("broken.toml", broken.as_str()),
            ("senseless.toml", senseless.as_str()),
            ("chained.toml", chained.as_str()),
            ("on-broken.toml", "base = \"broken.toml\""),
            ("on-senseless.toml", "base = \"senseless.toml\""),
            ("on-chained.toml", "base = \"chained.toml\""),
            ("on-itself.toml", "base = \"on-itself.toml\""),
            ("on-nothing.toml", "base = \"nothing.toml\""),
            ("on-a-number.toml", "base = 7"),
            ("unknown.toml", "base = \"base.toml\"\n[servers]\nworkforce = 4"),
            ("kind.toml", "base = \"base.toml\"\n[run]\nseeds = \"many\""),
            ("text.toml", "base = \"base.toml\"\n[run"),
        ];
        let folder = Folder::with("bywash-base-mistakes", &files);
        let says = |file: &str, parts: &[&str]| {
            let error = folder.read(file).expect_err("this file is wrong");
            for part in parts {
                assert!(error.contains(part), "{file}: {part:?} is not in {error:?}");
            }
            error
        };
        says("on-broken.toml", &["in its base", "broken.toml", "line 4", "workforce"]);
        says("on-senseless.toml", &["in its base", "senseless.toml", "`home`"]);
        says("on-chained.toml", &["chained.toml", "have a base itself"]);
        says("on-itself.toml", &["on-itself.toml", "have a base itself"]);
        says("on-nothing.toml", &["in its base", "nothing.toml", "cannot read"]);
        says("on-a-number.toml", &["base must be the path"]);
        for file in ["unknown.toml", "kind.toml", "text.toml"] {
            assert!(!says(file, &[]).contains("in its base"), "{file} is wrong itself");
        }
        says("unknown.toml", &["workforce", "servers"]);
        says("kind.toml", &["seeds"]);
        says("text.toml", &["line 2"]);
    }
}
