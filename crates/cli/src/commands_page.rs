//! `bywash commands-reference`: the reference of all commands, as Markdown.

use std::fmt::Write;

use clap::builder::PossibleValue;
use clap::{Arg, Command, CommandFactory};

use crate::args::Args;

/// The text of the page before the first command.
const HEAD: &str = include_str!("commands_page.txt");
/// The line of [`HEAD`] that the list of all commands replaces.
const LIST: &str = "{commands}\n";

/// Returns the page as Markdown.
pub(crate) fn page() -> String {
    let mut root = Args::command();
    root.build();
    let mut commands = Vec::new();
    collect(&root, &mut commands);
    let mut page = HEAD.replace(LIST, &list(&commands));
    for command in commands {
        add(command, &mut page);
    }
    page
}

/// Appends all subcommands that the help of `command` lists to `all`, and their subcommands at
/// every depth.
fn collect<'a>(command: &'a Command, all: &mut Vec<&'a Command>) {
    for one in subcommands(command) {
        all.push(one);
        collect(one, all);
    }
}

fn subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help")
}

/// Returns a table of commands, with links to their sections.
fn list(commands: &[&Command]) -> String {
    let mut table = "| command | purpose |\n|---|---|\n".to_owned();
    for command in commands {
        let (name, anchor) = (name(command), name(command).replace(' ', "-"));
        let _ = writeln!(table, "| [`{name}`](#{anchor}) | {} |", about(command));
    }
    table
}

fn name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

fn about(command: &Command) -> String {
    command.get_about().map(|about| escaped(&about.to_string())).unwrap_or_default()
}

/// Appends the section of a command to the page.
fn add(command: &Command, page: &mut String) {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim_end();
    let (name, about) = (name(command), about(command));
    let _ = write!(page, "\n## `{name}`\n\n{about}.\n\n```\n{usage}\n```\n");
    let commands: Vec<&Command> = subcommands(command).collect();
    if !commands.is_empty() {
        let _ = write!(page, "\n{}", list(&commands));
    }
    let is_own = |argument: &&Arg| {
        !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
    };
    let arguments: Vec<&Arg> = command.get_arguments().filter(is_own).collect();
    if !arguments.is_empty() {
        page.push_str("\n| argument or option | default | purpose |\n|---|---|---|\n");
    }
    for argument in arguments {
        let (purpose, told) = purpose(argument);
        let default = default(argument).or(told).unwrap_or_default();
        let spelled = spelled(argument).replace('|', "\\|");
        let _ = writeln!(page, "| `{spelled}` | {default} | {purpose} |");
    }
    if let Some(after) = command.get_after_help() {
        page.push('\n');
        explain(&after.to_string(), page);
    }
}

/// Returns an argument as a user writes it, such as `FILE` or `-c, --config FILE`.
fn spelled(argument: &Arg) -> String {
    let mut value = String::new();
    if argument.get_action().takes_values() {
        let names = argument.get_value_names().unwrap_or_default();
        value = names.join(" ");
        let most = argument.get_num_args().map_or(1, |range| range.max_values());
        if argument.get_value_delimiter().is_some() {
            value.push_str(",…");
        } else if argument.is_positional() && most > 1 {
            value.push('…');
        }
    }
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let option = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    [option, value].iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(" ")
}

/// Returns the default value that the parser uses; `None` if there is none.
fn default(argument: &Arg) -> Option<String> {
    if argument.is_required_set() {
        return Some("required".into());
    }
    let values = argument.get_default_values().iter();
    let values = values.map(|value| format!("`{}`", value.to_string_lossy()));
    let values = values.collect::<Vec<_>>().join(", ");
    (argument.get_action().takes_values() && !values.is_empty()).then_some(values)
}

/// Returns the description of an argument, and the default value that its text states as `[default:
/// …]`.
fn purpose(argument: &Arg) -> (String, Option<String>) {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let text = help.map(|help| escaped(&help.to_string())).unwrap_or_default();
    let (mut text, told) = match text.split_once(" [default: ") {
        Some((text, told)) => (text.to_owned(), Some(told.trim_end_matches(']').to_owned())),
        None => (text, None),
    };
    if argument.get_action().takes_values() {
        let values = argument.get_possible_values();
        let values = values.iter().filter(|value| !value.is_hide_set());
        let values: Vec<&str> = values.map(PossibleValue::get_name).collect();
        // If the text explains each value, the values need not be listed again.
        let is_explained = values.iter().all(|value| text.contains(&format!("{value}:")));
        if !values.is_empty() && !is_explained {
            let values = values.iter().map(|value| format!("`{value}`"));
            let _ = write!(text, ": {}", values.collect::<Vec<_>>().join(", "));
        }
    }
    if let Some(variable) = argument.get_env() {
        let _ = write!(text, "; also by the variable `{}`", variable.to_string_lossy());
    }
    (text, told)
}

/// Appends the text after a command's help to the page. Indented lines of the text are commands.
fn explain(text: &str, page: &mut String) {
    let mut is_code = false;
    for line in text.lines() {
        let code = line.strip_prefix("  ");
        if code.is_some() != is_code {
            page.push_str(if is_code { "```\n" } else { "\n```\n" });
            is_code = !is_code;
        }
        match code {
            Some(code) => page.push_str(code),
            None => page.push_str(&escaped(line)),
        }
        page.push('\n');
    }
    if is_code {
        page.push_str("```\n");
    }
}

/// Escapes a text so that Markdown shows it unchanged on one line, also within a table. The path of
/// a documentation page becomes a link to the page.
fn escaped(text: &str) -> String {
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    let line = line.join(" ").replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*");
    let Some((before, page)) = line.split_once("docs/how-to/") else { return line };
    let Some(end) = page.find(".md") else { return line };
    let (page, after) = page.split_at(end + ".md".len());
    format!("{before}[docs/how-to/{page}](../how-to/{page}){after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_help_has_a_section() {
        let page = page();
        assert!(!page.contains(LIST.trim()) && !page.contains("help ("), "{page}");
        for (section, part) in [
            ("## `bywash run`", "| `-c, --config FILE` |"),
            ("## `bywash elephants approve`", "| argument or option | default | purpose |"),
            ("## `bywash shaper`", "[`bywash shaper run`](#bywash-shaper-run)"),
            ("## `bywash completions`", "`bash`"),
            ("## `bywash elephants approve`", "| `--rate N\\|none` |"),
            ("## `bywash policy enforce`", "| `--by NAME` | the login name |"),
            ("## `bywash bypass`", "off: decide again |"),
        ] {
            let from = page.find(section).unwrap_or_else(|| panic!("{section}: {page}"));
            let rest = &page[from + 3..];
            let text = &rest[..rest.find("\n## ").unwrap_or(rest.len())];
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn examples_are_code_and_the_rest_is_text() {
        let mut page = String::new();
        explain("Examples:\n  bywash top\n  bywash top | jq\n\nA <path> may be *any*.", &mut page);
        assert_eq!(
            page,
            "Examples:\n\n```\nbywash top\nbywash top | jq\n```\n\nA &lt;path> may be \\*any\\*.\n"
        );
    }
}
