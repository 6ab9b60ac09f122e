//! Parses the text of a file into a TOML tree, reports its syntax errors, and reads the tables of
//! the tree.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use crate::code;
use crate::key::Section;
use crate::keys;
use crate::kind::described;
use crate::read::{self, Table, Values};
use crate::renamed;
use crate::report::{Finding, Report};
use crate::source::shown;
use crate::spelling;

/// A configuration file as a TOML tree.
pub(crate) struct Document<'t> {
    root: DeTable<'t>,
}

/// One table of a section that can occur many times, such as `[class.NAME]`.
pub(crate) struct Entry<'d, 't> {
    section: &'static Section,
    pub(crate) name: &'d str,
    /// The position of the table's name in the file.
    pub(crate) at: Range<usize>,
    table: &'d DeTable<'t>,
}

impl<'t> Document<'t> {
    /// Parses a text with recovery: syntax errors are reported, and everything else is kept.
    pub(crate) fn parse(text: &'t str, report: &mut Report) -> Self {
        let (root, errors) = DeTable::parse_recoverable(text);
        let echoes = echoes(&errors);
        for (index, error) in errors.iter().enumerate() {
            if echoes.contains(&index) {
                report.distrust(&error.span().unwrap_or_default());
            } else {
                add_error(text, error, report);
            }
        }
        let document = Self { root: root.into_inner() };
        document.complain_of_strangers(report);
        document
    }

    /// Builds a document that sets only the application's address. Positions in it are offsets in
    /// `url`, because there is no file.
    pub(crate) fn for_upstream(url: &'t str) -> Self {
        let whole = 0..url.len();
        let at = |value| Spanned::new(whole.clone(), value);
        let key = |name: &'static str| Spanned::new(whole.clone(), name.into());
        let version = DeValue::parse("1").expect("1 is TOML").into_inner();
        let mut upstream = DeTable::new();
        upstream.insert(key(keys::SERVER.name), at(DeValue::String(url.into())));
        let mut root = DeTable::new();
        root.insert(key(keys::VERSION.name), at(version));
        root.insert(key(keys::UPSTREAM.name), at(DeValue::Table(upstream)));
        Self { root }
    }

    /// Reads the values of a table. Keys that are missing, or all keys if the table is missing,
    /// have their defaults.
    pub(crate) fn section(&self, section: &Section, report: &mut Report) -> Values {
        let table = self.table(section);
        if !section.name.is_empty() {
            read::complain_of_strangers(&table, section.keys, report);
        }
        read::values(&table, section.keys, report)
    }

    /// Returns a table of the file. Its values are not read yet.
    pub(crate) fn table(&self, section: &Section) -> Table<'_, 't> {
        if section.name.is_empty() {
            return Table { path: String::new(), at: 0..0, entries: Some(&self.root) };
        }
        let found = self.root.get_key_value(section.name);
        let at = found.map_or(0..0, |(key, _)| key.span());
        let entries = found.and_then(|(_, value)| value.get_ref().as_table());
        Table { path: section.name.to_string(), at, entries }
    }

    /// Returns the tables of a repeatable section, such as `[class.NAME]`, in the order of the
    /// file.
    pub(crate) fn entries(
        &self,
        section: &'static Section,
        report: &mut Report,
    ) -> Vec<Entry<'_, 't>> {
        let mut entries = Vec::new();
        for (name, value) in self.table(section).entries.into_iter().flatten() {
            let at = name.span();
            let name = name.get_ref().as_ref();
            match value.get_ref() {
                DeValue::Table(table) => entries.push(Entry { section, name, at, table }),
                other => {
                    report.add(no_table(&format!("{}.{}", section.name, shown(name)), at, other));
                }
            }
        }
        entries.sort_by_key(|entry| entry.at.start);
        entries
    }

    /// Reports sections that are not tables, and unknown keys above the first table.
    fn complain_of_strangers(&self, report: &mut Report) {
        for (key, value) in &self.root {
            let name = key.get_ref().as_ref();
            let is_key = keys::ROOT.keys.iter().any(|key| key.name == name);
            let is_section = keys::SECTIONS.iter().any(|section| section.name == name);
            if is_section && !value.get_ref().is_table() {
                report.add(no_table(name, key.span(), value.get_ref()));
            } else if !is_section && !is_key {
                report.add(unknown_key(name, key.span(), value.get_ref().is_table()));
            }
        }
    }
}

impl<'d, 't> Entry<'d, 't> {
    pub(crate) fn table(&self) -> Table<'d, 't> {
        let path = format!("{}.{}", self.section.name, shown(self.name));
        Table { path, at: self.at.clone(), entries: Some(self.table) }
    }
}

fn unknown_key(name: &str, at: Range<usize>, is_table: bool) -> Finding {
    let tables = keys::SECTIONS.iter().map(|section| section.name);
    let known = keys::ROOT.keys.iter().map(|key| key.name).chain(tables);
    let message = format!("unknown key `{}`", shown(name));
    let help = is_table
        .then(|| renamed::key("", name))
        .flatten()
        .or_else(|| spelling::did_you_mean(name, known))
        .or_else(|| read::other_tables_with(name));
    Finding::new(&code::UNKNOWN_KEY, at, message).help(help)
}

fn no_table(path: &str, at: Range<usize>, given: &DeValue<'_>) -> Finding {
    let message = format!("`{path}` takes a table, not {}", described(given));
    let of_many = keys::SECTIONS.iter().any(|one| one.name == path && one.entry().is_some());
    let name = if of_many { ".NAME" } else { "" };
    let help = format!("write [{path}{name}] on its own line");
    Finding::new(&code::WRONG_TYPE, at, message).help(help)
}

/// Returns the indices of the errors that only repeat an earlier one. After an unclosed list, the
/// parser complains about every further line of the file.
fn echoes(errors: &[Error]) -> Range<usize> {
    let is_unclosed = |error: &Error| error.message().starts_with("unclosed array");
    let Some(end) = errors.iter().rposition(is_unclosed) else {
        return 0..0;
    };
    let is_of_list = |error: &&Error| error.message().contains("array");
    let run = errors[..end].iter().rev().take_while(is_of_list).count();
    end - run + 1..end + 1
}

fn add_error(text: &str, error: &Error, report: &mut Report) {
    let at = error.span().unwrap_or_default();
    let given = text.get(at.clone()).unwrap_or_default();
    if error.message() == "duplicate key" {
        let message = format!("`{}` occurs twice in the same table", shown(given));
        let help = "keep one of them".to_string();
        report.add(Finding::new(&code::DUPLICATE, at, message).help(help));
        return;
    }
    let message = format!("this is not TOML: {}", error.message());
    let help = help_of(error.message(), given);
    report.add_broken(Finding::new(&code::SYNTAX, at, message).help(help));
}

fn help_of(message: &str, given: &str) -> Option<String> {
    if message.starts_with("string values must be quoted") && !given.is_empty() {
        return Some(format!("write \"{}\"", shown(given)));
    }
    let is_of_list = message.contains("array");
    is_of_list.then(|| "is a `,` or a `]` missing before this?".to_string())
}
