//! Tests of every key in the table of keys. A new key is tested without further code.

use bywash_engine::catalog::Entry;

use crate::key::{Key, Presence, Section};
use crate::kind::ValueKind;
use crate::{Config, Problem, Problems, Severity, keys, schema};

/// A key to be tested, and the table that it belongs to.
struct TestedKey {
    section: &'static Section,
    policy: Option<Entry>,
    key: Key,
}

fn tested_keys() -> Vec<TestedKey> {
    let of_section = |section: &'static Section| {
        let keys = section.keys.iter().cloned();
        keys.map(move |key| TestedKey { section, policy: None, key })
    };
    let of_policy = |section: &'static Section, policy: Entry| {
        let keys = keys::parameters(&policy).into_iter();
        keys.map(move |key| TestedKey { section, policy: Some(policy), key })
    };
    let of_policies = |section: &'static Section| {
        section.policies().into_iter().flat_map(move |policy| of_policy(section, policy))
    };
    let keys = keys::SECTIONS.into_iter().flat_map(of_section);
    keys.chain(keys::SECTIONS.into_iter().flat_map(of_policies)).collect()
}

impl TestedKey {
    /// Returns a file that is valid except for `lines`, which replace the key.
    fn file(&self, lines: &str) -> String {
        let mut file = String::new();
        for section in keys::SECTIONS {
            if !section.name.is_empty() {
                file += &(section.heading() + "\n");
            }
            if section.name == self.section.name {
                file += lines;
            }
            file += &self.rest(section);
        }
        file
    }

    /// Returns the lines of other keys that the table requires.
    fn rest(&self, section: &Section) -> String {
        if let Some(policy) = self.policy.filter(|_| section.name == self.section.name) {
            return format!("policy = \"{}\"\n", policy.name);
        }
        let is_this = |key: &Key| section.name == self.section.name && key.name == self.key.name;
        let needed = |key: &&Key| key.presence == Presence::Required && !is_this(key);
        section.keys.iter().filter(needed).map(|key| key.line() + "\n").collect()
    }

    fn problems(&self, lines: &str) -> Problems {
        Config::parse(&self.file(lines), "test").expect_err(lines)
    }

    /// Returns the only error of a file with this value of the key. Warnings are ignored:
    /// `value-index` warns that no class has revenue.
    fn problem_of(&self, value: &str) -> Problem {
        let problems = self.problems(&format!("{} = {value}\n", self.key.name));
        let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
        let errors: Vec<&Problem> = errors.collect();
        let [problem] = errors[..] else { panic!("{value}: {problems}") };
        let line = self.file("\u{1}").lines().position(|line| line.contains('\u{1}'));
        assert_eq!(problem.line, line.unwrap() + 1, "{problems}");
        problem.clone()
    }
}

/// Returns values of a type that the kind does not accept.
fn of_another_type(kind: &ValueKind) -> [&'static str; 4] {
    match kind {
        ValueKind::Truth => ["1", "\"true\"", "2020-01-01", "{}"],
        _ => ["true", "2020-01-01", "{}", "{ a = 1 }"],
    }
}

/// Returns values of the right type that the kind does not allow.
fn not_allowed(kind: &ValueKind) -> Vec<String> {
    match kind {
        ValueKind::Exactly(only) => vec![format!("{}", only + 1)],
        ValueKind::Whole { max, .. } => vec![format!("{}", max + 1), "-1".into()],
        ValueKind::Number { .. } => vec!["-0.1".into(), "nan".into(), "inf".into()],
        ValueKind::TimeSpan { .. } => vec!["\"20\"".into(), "\"9999h\"".into(), "\"-1s\"".into()],
        ValueKind::Bytes { max, .. } => vec![format!("{}", max + 1), "\"1KB\"".into(), "-1".into()],
        ValueKind::Word(_) | ValueKind::Policy(_) => vec!["\"zzz\"".into(), "\"\"".into()],
        // A boolean has no value of the right type that is not allowed.
        ValueKind::Truth => vec![],
        ValueKind::Admin => vec!["\"8080\"".into(), "\"unix:\"".into(), "\"unix:run/a\"".into()],
        ValueKind::Path => vec!["\"\"".into(), "\"a\\nb\"".into()],
        ValueKind::Paths { .. } => vec!["[]".into(), "[\"\"]".into()],
        ValueKind::Address => vec!["\"8080\"".into(), "\"localhost:1\"".into()],
        ValueKind::Text { .. } => vec!["\"?\"".into(), "\"\"".into()],
        ValueKind::Texts { alone: true, .. } => {
            vec!["[]".into(), "[\"zzz\"]".into(), "\"zzz\"".into(), "\"\"".into()]
        }
        ValueKind::Texts { least: 0, .. } => vec!["[\"zz z\"]".into()],
        ValueKind::Texts { .. } => vec!["[]".into(), "[\"zz z\"]".into()],
    }
}

#[test]
fn a_value_of_the_wrong_type_is_refused_at_its_place() {
    for tested in tested_keys() {
        for value in of_another_type(&tested.key.kind) {
            let problem = tested.problem_of(value);
            assert_eq!(problem.code, "E003", "{} = {value}", tested.key.name);
            assert_eq!(problem.column, tested.key.name.len() + 4);
        }
    }
}

#[test]
fn a_value_that_is_not_allowed_is_refused_at_its_place() {
    for tested in tested_keys() {
        for value in not_allowed(&tested.key.kind) {
            let problems = tested.problems(&format!("{} = {value}\n", tested.key.name));
            let first = problems.iter().find(|problem| problem.severity.name() == "error").unwrap();
            assert!(first.code != "E003" && first.code != "E001", "{} {value}", tested.key.name);
            let item = usize::from(value.starts_with("[\""));
            assert_eq!(first.column, tested.key.name.len() + 4 + item, "{problems}");
        }
    }
}

#[test]
fn a_list_that_is_too_long_is_refused_as_a_whole() {
    for tested in tested_keys() {
        let most = match tested.key.kind {
            ValueKind::Texts { most, .. } | ValueKind::Paths { most } if most != usize::MAX => most,
            _ => continue,
        };
        let problem = tested.problem_of(&format!("[{}]", "\"a\", ".repeat(most + 1)));
        assert_eq!(problem.code, "E004", "{}", tested.key.name);
        assert!(problem.message.ends_with(&format!("not a list of {}", most + 1)));
    }
}

#[test]
fn a_slip_in_the_name_of_a_key_gets_the_name() {
    for tested in tested_keys() {
        let (name, wrong) = (tested.key.name, format!("{}x", tested.key.name));
        let value = tested.key.kind.literal(&tested.key.text);
        let problems = tested.problems(&format!("{wrong} = {value}\n"));
        let problem = problems.iter().find(|problem| problem.code == "E002").unwrap();
        assert!(problem.message.contains(&wrong), "{problems}");
        assert_eq!(problem.help.as_deref(), Some(format!("did you mean `{name}`?").as_str()));
    }
}

#[test]
fn a_required_key_that_is_missing_is_written_out_for_the_reader() {
    for tested in tested_keys().iter().filter(|tested| tested.key.presence == Presence::Required) {
        let problems = tested.problems("");
        let problem =
            problems.iter().find(|problem| problem.code == "E005").expect("it is missing");
        let help = problem.help.as_deref().unwrap();
        assert!(help.contains(&tested.key.line()), "{help}");
    }
}

#[test]
fn a_key_that_stands_twice_is_refused_at_the_second() {
    for tested in tested_keys() {
        let line = format!("{}\n", tested.key.line());
        let problems = tested.problems(&line.repeat(2));
        let problem = problems.iter().find(|problem| problem.code == "E007");
        let first = tested.file("\u{1}").lines().position(|line| line.contains('\u{1}'));
        assert_eq!(problem.unwrap().line, first.unwrap() + 2, "{problems}");
    }
}

#[test]
fn every_key_has_its_entry_in_the_schema() {
    let schema = schema();
    for tested in tested_keys() {
        let table = match (tested.section.name, tested.policy) {
            ("", _) => &schema,
            (name, _) if tested.section.entry().is_some() => {
                &schema["properties"][name]["additionalProperties"]
            }
            (name @ ("scheduler" | "concurrency" | "terminate"), policy) => {
                let mut policies = tested.section.policies().into_iter();
                let index = policies.position(|p| Some(p.name) == policy.map(|p| p.name));
                &schema["properties"][name]["oneOf"][index.unwrap_or(0)]
            }
            (name, _) => &schema["properties"][name],
        };
        let entry = &table["properties"][tested.key.name];
        assert!(entry["description"].is_string(), "{} {}", tested.section.name, tested.key.name);
        assert_eq!(entry["default"].is_null(), tested.key.presence != Presence::Default);
        assert_eq!(table["additionalProperties"], false);
    }
}
