//! Resolves `[levels]`: the names of levels, their assignment, and the keys that sign them.
//!
//! The signing keys are read from their file immediately, like those of session tokens.

use std::ops::Range;
use std::path::Path;

use bywash_token::{LevelKeys, Secrets, is_level_name};
use toml::Spanned;

use super::fields;
use crate::code;
use crate::identify::Identify;
use crate::keys;
use crate::levels::{Level, Levels, find_level};
use crate::read::Values;
use crate::report::{Finding, Report};
use crate::source::shown;
use crate::spelling;
use crate::value::Value;

/// The names of the levels, which are resolved before the other values.
pub(super) struct Names {
    /// The names of the levels, the best first.
    names: Vec<String>,
    /// Whether some names in the file were rejected, so that the list is incomplete.
    doubtful: bool,
}

pub(super) fn names(values: &Values, report: &mut Report) -> Names {
    let mut this = Names { names: Vec::new(), doubtful: values.refused(&keys::NAMES) };
    let given = values.get(&keys::NAMES).map(Value::texts).unwrap_or_default();
    for text in given {
        let name = text.get_ref();
        if !is_level_name(name) {
            this.doubtful = true;
            report.add(no_name(text, "is not a valid name of a level", &meant(name)));
        } else if this.names.contains(name) {
            report.add(no_name(text, "is listed twice", "remove one of them"));
        } else {
            this.names.push(name.clone());
        }
    }
    this
}

fn no_name(text: &Spanned<String>, why: &str, help: &str) -> Finding {
    let message = format!("\"{}\" {why}", shown(text.get_ref()));
    Finding::new(&code::LEVEL_NAME, text.span(), message).help(help.to_string())
}

fn meant(name: &str) -> String {
    let meant = name.trim().to_lowercase().replace([' ', '_', '.'], "-");
    if is_level_name(&meant) {
        format!("did you mean `{meant}`?")
    } else {
        "use a to z, 0 to 9 and -, at most 32 characters".to_string()
    }
}

impl Names {
    /// Returns the level that a key of the file names. An unknown name is reported.
    pub(super) fn level(
        &self,
        path: &str,
        (name, at): (&str, Range<usize>),
        report: &mut Report,
    ) -> Option<Level> {
        let found = find_level(&self.names, name.as_bytes());
        if found.is_none() && !self.doubtful {
            let message = format!("`{path}`: there is no level `{}`", shown(name));
            let names = || self.names.iter().map(String::as_str);
            let help = spelling::did_you_mean(name, names()).unwrap_or_else(|| {
                let write = format!("write {} under [levels]", keys::NAMES.line());
                let known = names().collect::<Vec<_>>().join("`, `");
                if known.is_empty() { write } else { format!("the levels are `{known}`") }
            });
            report.add(Finding::new(&code::NO_SUCH_LEVEL, at, message).help(help));
        }
        found
    }
}

/// Returns the levels; `None` if none are defined or if their settings are invalid.
pub(super) fn levels(
    values: &Values,
    names: Names,
    listen: &Values,
    identify: &Identify,
    report: &mut Report,
) -> Option<Levels> {
    let default = values.given(&keys::DEFAULT_LEVEL);
    let default =
        default.and_then(|(value, at)| names.level("levels.default", (value.text(), at), report));
    let key = key_file(values, identify, report);
    let customer_header = customer_header(values, listen, report);
    check_whole(values, &names, report);
    let last = names.names.len().checked_sub(1).and_then(|last| u8::try_from(last).ok())?;
    let (file, keys) = key?;
    Some(Levels {
        names: names.names,
        default: default.unwrap_or(Level(last)),
        file,
        keys,
        customer_header,
    })
}

fn key_file(
    values: &Values,
    identify: &Identify,
    report: &mut Report,
) -> Option<(std::path::PathBuf, LevelKeys)> {
    let (value, at) = values.given(&keys::KEY_FILE)?;
    let path = Path::new(value.text());
    let secrets = bywash_files::secret(path)
        .map_err(|why| why.to_string())
        .and_then(|text| Secrets::parse(&text).map_err(|fault| fault.to_string()));
    let secrets = match secrets {
        Ok(secrets) => secrets,
        Err(why) => {
            let message = format!("cannot use `levels.key_file`: {}", shown(&why));
            let help = "make the file with `bywash token-keys`, and let only the users of the \
                        gateway and of the application read it";
            report.add(Finding::new(&code::LEVEL_KEYS, at, message).help(help.to_string()));
            return None;
        }
    };
    if identify.token.as_ref().is_some_and(|token| token.keys.are_made_of(&secrets)) {
        let message = "`levels.key_file` has a key of `identify.token_keys`: the application, which \
                       verifies levels, could make session tokens";
        let help = "make another key file with `bywash token-keys`".to_string();
        report.add(Finding::new(&code::SHARED_KEYS, at, message.to_string()).help(help));
    }
    Some((path.into(), LevelKeys::new(&secrets)))
}

fn customer_header(values: &Values, listen: &Values, report: &mut Report) -> Option<String> {
    let (value, at) = values.given(&keys::CUSTOMER_HEADER)?;
    let path = "levels.customer_header";
    let name = fields::taken_from_requests(path, value.text(), at.clone(), report);
    let hops = listen.of(&keys::TRUSTED_PROXIES).texts();
    if hops.is_empty() && !listen.refused(&keys::TRUSTED_PROXIES) {
        let message = format!("`{path}` has no effect: there are no trusted proxies");
        let help = "name the hops in front of the gateway in `listen.trusted_proxies`".to_string();
        report.add(Finding::new(&code::NO_CUSTOMER, at, message).help(help));
    }
    name
}

/// Checks that names of levels come with signing keys, and that other settings come with names.
fn check_whole(values: &Values, names: &Names, report: &mut Report) {
    let first = values.get(&keys::NAMES).and_then(|names| names.texts().first());
    match first {
        Some(first) => {
            let is_said =
                values.given(&keys::KEY_FILE).is_some() || values.refused(&keys::KEY_FILE);
            if !is_said {
                let message = "there are levels, and no keys to sign them";
                let help = format!(
                    "write {}, a file that `bywash token-keys` makes",
                    keys::KEY_FILE.line()
                );
                let at = first.span();
                report.add(Finding::new(&code::NO_LEVEL_KEYS, at, message.to_string()).help(help));
            }
        }
        None if !names.doubtful => {
            for key in [keys::KEY_FILE, keys::CUSTOMER_HEADER] {
                let Some((_, at)) = values.given(&key) else { continue };
                let message = format!("`levels.{}` has no effect: there are no levels", key.name);
                let help = format!("write {}, best first", keys::NAMES.line());
                report.add(Finding::new(&code::LEVELS_UNUSED, at, message).help(help));
            }
        }
        None => {}
    }
}
