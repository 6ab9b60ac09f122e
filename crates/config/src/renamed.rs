//! Former names of tables, keys and values. The help text for a former name gives the present one.

/// The former names of tables and keys. Each entry is the table (empty above the first table), the
/// former name and the present name.
pub(crate) static RENAMED: &[(&str, &str, &str)] = &[
    ("", "limit", "concurrency"),
    ("", "limits", "client_limits"),
    ("", "order", "scheduler"),
    ("", "sentry", "stopd"),
    ("class", "after", "requires"),
    ("class", "earns", "revenue"),
    ("class", "earns_header", "revenue_header"),
    ("class", "percent", "enforce_percent"),
    ("class", "pin", "fixed_value"),
    ("class", "safe", "cancellable"),
    ("database", "marks", "query_tags"),
    ("elephants", "pins", "always_track"),
    ("identify", "charge", "principal"),
    ("learn", "drift", "max_change_per_hour"),
    ("scheduler", "browse", "browsing_capacity"),
    ("scheduler", "transact", "transaction_capacity"),
    ("throttle", "at_once", "max_concurrency"),
];

/// The former values. Each entry is the table, the key, the former value and the present value.
pub(crate) static RENAMED_VALUES: &[(&str, &str, &str, &str)] = &[
    ("class", "cancellable", "read-only", "true"),
    ("class", "tier", "browse", "browsing"),
    ("class", "tier", "transact", "transaction"),
];

/// Returns the help text if `name` is a former name in the table at `path`, otherwise `None`.
pub(crate) fn key(path: &str, name: &str) -> Option<String> {
    let is_it = |(of, old, _): &&(&str, &str, &str)| *of == table(path) && *old == name;
    RENAMED.iter().find(is_it).map(|(_, old, new)| is_now(old, new))
}

/// Returns the help text if `given` is a former value of the key, otherwise `None`. `given` can be
/// in quotes.
pub(crate) fn value(path: &str, key: &str, given: &str) -> Option<String> {
    let given = given.trim_matches('"');
    let of_key = RENAMED_VALUES.iter().filter(|(of, name, ..)| *of == table(path) && *name == key);
    let found = of_key.map(|(.., old, new)| (old, new)).find(|(old, _)| **old == given);
    found.map(|(old, new)| is_now(old, new))
}

/// Returns the first part of a table's path: `class` for `class.home`.
fn table(path: &str) -> &str {
    path.split_once('.').map_or(path, |(table, _)| table)
}

fn is_now(old: &str, new: &str) -> String {
    format!("`{old}` is now `{new}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Section;
    use crate::{Config, code, keys};

    /// Returns whether a file with these lines has a problem with this help and one of the codes.
    fn helps(lines: &str, codes: &[&str], help: &str) -> bool {
        let text = format!("version = 1\nupstream.server = \"http://127.0.0.1:3000\"\n{lines}\n");
        let problems = Config::parse(&text, "bywash.toml").expect_err(lines);
        problems.iter().any(|one| codes.contains(&one.code) && one.help.as_deref() == Some(help))
    }

    fn section(table: &str) -> &'static Section {
        keys::SECTIONS.into_iter().find(|section| section.name == table).expect(table)
    }

    /// Returns whether the table has a key of this name, or a policy with a parameter of this name.
    fn has(section: &Section, name: &str) -> bool {
        let policies = section.policies();
        let mut parameters = policies.iter().flat_map(|policy| policy.parameters);
        section.keys.iter().any(|key| key.name == name)
            || parameters.any(|parameter| parameter.name == name)
    }

    #[test]
    fn each_former_name_is_unknown_and_its_help_is_a_present_one() {
        for (table, old, new) in RENAMED {
            let help = format!("`{old}` is now `{new}`");
            let is_table = |name: &str| keys::SECTIONS.iter().any(|section| section.name == name);
            let (lines, knows_old, knows_new) = if table.is_empty() {
                (format!("[{old}]"), is_table(old), is_table(new))
            } else {
                let section = section(table);
                let lines = format!("{}\n{old} = 1", section.heading());
                (lines, has(section, old), has(section, new))
            };
            assert!(!knows_old, "{table}.{old} is a name");
            assert!(knows_new, "{table}.{new} is no name");
            assert!(helps(&lines, &[code::UNKNOWN_KEY.name], &help), "{lines}");
        }
        for (table, key, old, new) in RENAMED_VALUES {
            let help = format!("`{old}` is now `{new}`");
            let lines = format!("{}\n{key} = \"{old}\"", section(table).heading());
            let codes = [code::BAD_VALUE.name, code::WRONG_TYPE.name];
            assert!(helps(&lines, &codes, &help), "{lines}");
            let of_key = section(table).keys.iter().find(|one| one.name == *key).expect(key);
            let words = of_key.kind.words();
            assert!(words.contains(new) || words.is_empty() && *new == "true", "{key}: {new}");
        }
    }
}
