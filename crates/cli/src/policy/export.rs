//! `bywash export`: prints active overrides and rules as TOML, or writes them into the
//! configuration file.
//!
//! Comments, order and spelling of the file are preserved. Only the values of the keys that were
//! decided change, each with a comment that names the author of the decision. If the result is not
//! a valid configuration, nothing is written. Otherwise the result replaces the file atomically.

use std::path::Path;

use bywash_api::Exported;
use bywash_command::Failure;
use bywash_command::admin_client;
use bywash_command::replace::replace;
use bywash_command::streams::{has_colour, print, say};
use bywash_config::Config;
use toml_edit::{DocumentMut, InlineTable, Item, RawString, Table, TableLike, Value};

use crate::args::policy::Export;

pub(crate) fn export(args: &Export) -> Result<(), Failure> {
    let exported: Exported = admin_client::get(&args.which, "/v1/export")?;
    let Some(path) = &args.write else { return print(&exported.toml) };
    let not_done = |why: String| Failure::running(format!("{}: {why}", path.display()));
    let text = bywash_files::text(path, LARGEST).map_err(|why| not_done(why.to_string()))?;
    let merged = merged(&text, &exported.toml).map_err(not_done)?;
    if merged == text {
        say(format!("bywash: {} has these settings already", path.display()));
        return Ok(());
    }
    check(&merged, path)?;
    replace(path, &merged).map_err(|error| not_done(error.to_string()))?;
    say(format!("bywash: {} has these settings now", path.display()));
    Ok(())
}

/// The maximum size of the configuration file in bytes. A real configuration is far smaller.
const LARGEST: usize = 1024 * 1024;

fn check(text: &str, path: &Path) -> Result<(), Failure> {
    let name = format!("{} with these settings", path.display());
    match Config::parse(text, &name) {
        Ok(_) => Ok(()),
        Err(problems) => Err(Failure::configuration(problems.render(has_colour()))),
    }
}

/// Returns the text of the configuration file with the exported settings merged in. Returns an
/// error that says why if that is impossible.
fn merged(text: &str, exported: &str) -> Result<String, String> {
    let parse = |text: &str| text.parse::<DocumentMut>().map_err(|error| error.to_string());
    let (mut file, exported) = (parse(text)?, parse(exported)?);
    for (section, tables) in exported.iter() {
        for (name, table) in tables.as_table_like().into_iter().flat_map(TableLike::iter) {
            let table = table.as_table().ok_or("the export has a value in the place of a table")?;
            let name = name_in(&file, section, name, table);
            let item = table_in(&mut file, section, &name)?;
            let comment = table.decor().prefix().and_then(|prefix| prefix.as_str());
            // An inline table has no room for a comment.
            let comment = comment.filter(|_| item.is_table()).map(one_line).unwrap_or_default();
            let into = item.as_table_like_mut();
            let into = into.ok_or_else(|| format!("`{section}.{name}` is not a table"))?;
            merge_into(into, table, section, &comment);
            if let Some(line) = item.as_inline_table_mut() {
                line.fmt();
            }
        }
    }
    Ok(file.to_string())
}

/// Returns the name under which an exported table is written to this file. If the file has a rule
/// for the same requests, the name is that rule's. If a different rule has the name `name`, a
/// number is appended to `name`.
fn name_in(file: &DocumentMut, section: &str, name: &str, exported: &Table) -> String {
    let tables = file.get(section).and_then(Item::as_table_like);
    let (THROTTLE, Some(tables)) = (section, tables) else { return name.to_owned() };
    let requests = |item: &Item| item.get("match")?.as_str().map(str::to_owned);
    let own = exported.get("match").and_then(Item::as_str).map(str::to_owned);
    if let Some((same, _)) = tables.iter().find(|(_, item)| requests(item) == own) {
        return same.to_owned();
    }
    let names = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name}-{n}")));
    let mut free = names.skip_while(|name| tables.contains_key(name));
    free.next().unwrap_or_else(|| name.to_owned())
}

const THROTTLE: &str = "throttle";
/// The keys that set the limits of a rule. If a limit is not exported, its key is removed from the
/// file.
const LIMIT_KEYS: [&str; 5] = ["max_concurrency", "rate", "queue", "wait", "bytes"];

/// Returns the table of this name in the section, which is created if it is missing.
fn table_in<'f>(
    file: &'f mut DocumentMut,
    section: &str,
    name: &str,
) -> Result<&'f mut Item, String> {
    let no_table = format!("`{section}` is not a table");
    let section = file.entry(section).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let within_line = section.as_inline_table().is_some();
    let section = section.as_table_like_mut().ok_or(no_table)?;
    let new = || {
        if within_line { Item::Value(InlineTable::new().into()) } else { Item::Table(Table::new()) }
    };
    Ok(section.entry(name).or_insert_with(new))
}

/// Sets each key of `exported` whose value in the file differs. The first changed key gets the
/// comment `comment`.
fn merge_into(into: &mut dyn TableLike, exported: &Table, section: &str, comment: &str) {
    let mut comment = Some(comment).filter(|comment| !comment.is_empty());
    for (key, item) in exported {
        let Some(value) = item.as_value() else { continue };
        if into.get(key).and_then(Item::as_value).is_some_and(|old| same(old, value)) {
            continue;
        }
        set(into, key, value.clone(), comment.take());
    }
    // An exported class without a percentage is enforced for all clients, but the file may set a
    // lower percentage. That one becomes 100.
    if section == "class"
        && exported.get("enforce_percent").is_none()
        && into.contains_key("enforce_percent")
    {
        set(into, "enforce_percent", 100.into(), None);
    }
    if section == THROTTLE {
        for limit_key in
            LIMIT_KEYS.into_iter().filter(|limit_key| exported.get(limit_key).is_none())
        {
            into.remove(limit_key);
        }
    }
}

/// Sets a value, and keeps all comments next to the key. A new comment is appended to the existing
/// ones.
fn set(into: &mut dyn TableLike, key: &str, value: Value, comment: Option<&str>) {
    let old = into.get_mut(key).and_then(Item::as_value_mut);
    let decor = old.as_ref().map(|old| old.decor().clone());
    let part = |part: Option<&RawString>| part.and_then(RawString::as_str).map(str::to_owned);
    let before =
        decor.as_ref().and_then(|decor| part(decor.prefix())).unwrap_or_else(|| " ".into());
    let behind = decor.as_ref().and_then(|decor| part(decor.suffix())).unwrap_or_default();
    let behind = match comment {
        None => behind,
        Some(comment) if behind.contains('#') => format!("{}; {comment}", behind.trim_end()),
        Some(comment) => format!(" # {comment}"),
    };
    let value = value.decorated(before, behind);
    match old {
        Some(old) => *old = value,
        None => _ = into.insert(key, Item::Value(value)),
    }
}

fn same(a: &Value, b: &Value) -> bool {
    let bare = |value: &Value| value.clone().decorated("", "").to_string();
    bare(a) == bare(b)
}

/// Joins the lines of a comment into one line.
fn one_line(comment: &str) -> String {
    let lines = comment.lines().map(|line| line.trim().trim_start_matches('#').trim());
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "# \"ana\", since then, until then: \"too many\"\n[class.search]\nmode = \"enforce\"\nenforce_percent = 10\n\n\
        # \"bo\", since then, until then\n[throttle.elephant-3]\nmatch = \"/s?q\"\nwhy = \"so\"\nmax_concurrency = 2\n";

    #[test]
    fn what_a_file_says_stays_and_what_was_decided_is_added() {
        let file = "# mine\nversion = 1\n\n[class.search] # searches\nmatch = [\"GET /search\"]\nmode = \"observe\"\n\n\
            [class.other]\nutility = 2 # few\n";
        let merged = merged(file, SAID).unwrap();
        assert_eq!(
            merged,
            "# mine\nversion = 1\n\n[class.search] # searches\nmatch = [\"GET /search\"]\nmode = \"enforce\" # \"ana\", since then, \
             until then: \"too many\"\nenforce_percent = 10\n\n[class.other]\nutility = 2 # few\n\n[throttle.elephant-3]\nmatch = \"/s?q\" \
             # \"bo\", since then, until then\nwhy = \"so\"\nmax_concurrency = 2\n"
        );
        assert_eq!(super::merged(&merged, SAID).unwrap(), merged, "said twice it is there once");
    }

    #[test]
    fn no_comment_is_lost() {
        let file = "[class.search]\n# Ask Maria first.\nmode = \"observe\" # ticket 77\n# agreed\nenforce_percent = 5 # legal-12\n";
        let all = "# ana\n[class.search]\nmode = \"enforce\"\n";
        assert_eq!(
            merged(file, all).unwrap(),
            "[class.search]\n# Ask Maria first.\nmode = \"enforce\" # ticket 77; ana\n# agreed\nenforce_percent = 100 # legal-12\n"
        );
    }

    #[test]
    fn a_rule_for_other_requests_stays_and_one_for_the_same_is_replaced_as_a_whole() {
        let file = "[throttle.elephant-3]\nmatch = \"/old\"\nwhy = \"old\"\nrate = 0.5\n\n\
            [throttle.mine]\nmatch = \"/s?q\"\nwhy = \"mine\"\nrate = 0.5\nbytes = 100000\n";
        let merged = merged(file, SAID).unwrap();
        let read: toml_edit::DocumentMut = merged.parse().unwrap();
        assert_eq!(read["throttle"]["elephant-3"]["match"].as_str(), Some("/old"), "{merged}");
        let mine = read["throttle"]["mine"].as_table().unwrap();
        let keys: Vec<&str> = mine.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["match", "why", "max_concurrency"], "{merged}");
        let taken = "[throttle.elephant-3]\nmatch = \"/old\"\nwhy = \"old\"\n";
        assert!(
            super::merged(taken, SAID)
                .unwrap()
                .contains("[throttle.elephant-3-2]\nmatch = \"/s?q\"")
        );
    }

    #[test]
    fn tables_on_one_line_and_dotted_keys_are_tables_too() {
        let merged = |file| merged(file, "# a\n[class.search]\nmode = \"enforce\"\n").unwrap();
        let line = "class.search = { match = ['GET /s'], mode = 'observe', enforce_percent = 5 }\n";
        assert_eq!(
            merged(line),
            "class.search = { match = ['GET /s'], mode = \"enforce\", enforce_percent = 100 }\n"
        );
        let within = "class = { search = { match = ['GET /s'] } }\n";
        assert_eq!(
            merged(within),
            "class = { search = { match = ['GET /s'], mode = \"enforce\" } }\n"
        );
        let dotted = "class.search.match = ['GET /s']\n";
        assert_eq!(
            merged(dotted),
            "class.search.match = ['GET /s']\nclass.search.mode = \"enforce\" # a\n"
        );
    }

    #[test]
    fn what_is_no_file_of_ours_is_refused() {
        assert!(merged("class = 3\n", SAID).is_err());
        assert!(merged("class.search = 3\n", SAID).is_err());
        assert!(merged("[class", SAID).is_err());
    }
}
