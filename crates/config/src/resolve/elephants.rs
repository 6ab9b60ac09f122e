//! Resolves `[elephants]`, `[resource.NAME]` and `[throttle.NAME]`.

use std::ops::Range;
use std::path::PathBuf;

use bywash_engine::classify::Pattern;
use bywash_engine::throttle::Rule;
use bywash_units::Rate;

use super::server;
use crate::code::{self, Code};
use crate::document::{Document, Entry};
use crate::elephants::{Elephants, ReadFrom, Resource, Throttle};
use crate::key::Section;
use crate::keys;
use crate::mode::Mode;
use crate::read::{self, Values};
use crate::report::{Finding, Report};
use crate::source::shown;
use crate::value::Value;

pub(super) fn elephants(document: &Document<'_>, mode: Mode, report: &mut Report) -> Elephants {
    let values = document.section(&keys::ELEPHANTS, report);
    let always_track = values.of(&keys::ALWAYS_TRACK).texts();
    for pattern in always_track {
        check_pattern("elephants.always_track", pattern.get_ref(), pattern.span(), report);
    }
    let resources = some(document, &keys::RESOURCE, (&code::RESOURCES, keys::RESOURCES), report);
    let throttles = some(document, &keys::THROTTLE, (&code::THROTTLES, keys::THROTTLES), report);
    let throttles: Vec<(Throttle, Mode)> =
        throttles.iter().map(|entry| throttle(entry, mode, report)).collect();
    Elephants {
        act: values.of(&keys::ACT).word(),
        half_life: values.of(&keys::ELEPHANT_HALF_LIFE).span(),
        always_track: always_track.iter().map(|pattern| pattern.get_ref().clone()).collect(),
        resources: resources.iter().map(|entry| resource(entry, report)).collect(),
        throttles: throttles
            .into_iter()
            .filter(|(_, mode)| *mode == Mode::Enforce)
            .map(|(throttle, _)| throttle)
            .collect(),
    }
}

/// Returns the tables of a section, with their names checked. Tables beyond the allowed number are
/// reported and left out.
pub(super) fn some<'d, 't>(
    document: &'d Document<'t>,
    section: &'static Section,
    (code, most): (&'static Code, usize),
    report: &mut Report,
) -> Vec<Entry<'d, 't>> {
    let mut entries = document.entries(section, report);
    if let Some(first) = entries.get(most) {
        let message = format!(
            "there are {} tables [{}.NAME], and at most {most} are allowed",
            entries.len(),
            section.name
        );
        report.add(Finding::new(code, first.at.clone(), message));
    }
    entries.truncate(most);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    for entry in &entries {
        if !(1..=32).contains(&entry.name.len()) || !entry.name.chars().all(plain) {
            let message =
                format!("`{}` is not a valid name of a {}", shown(entry.name), section.name);
            let help = "use letters, digits, _ and -, at most 32 characters".to_string();
            let at = entry.at.clone();
            report.add(Finding::new(&code::PART_NAME, at, message).help(help));
        }
    }
    entries
}

pub(super) fn values_of(entry: &Entry<'_, '_>, section: &Section, report: &mut Report) -> Values {
    let table = entry.table();
    read::complain_of_strangers(&table, section.keys, report);
    read::values(&table, section.keys, report)
}

fn resource(entry: &Entry<'_, '_>, report: &mut Report) -> Resource {
    let values = values_of(entry, &keys::RESOURCE, report);
    let read = values.of(&keys::READ).text();
    let from = values.get(&keys::FROM).map(|from| from_where(from.text()));
    if let Some((_, at)) = values.given(&keys::READ)
        && !matches!(from, Some(ReadFrom::Exporter(_)))
        && !is_of_this_host(read)
    {
        let message = format!("`{}` is not a metric of this host", shown(read));
        let help = format!("`read` takes {}", keys::READ.kind.takes());
        report.add(Finding::new(&code::RESOURCE, at, message).help(help));
    }
    let can_be = match &from {
        Some(ReadFrom::Exporter(url)) => is_exporter(url),
        Some(ReadFrom::ProcessFile(_)) => read.starts_with("process/"),
        None => true,
    };
    if let Some((text, at)) = values.given(&keys::FROM)
        && !can_be
    {
        let message = format!("`{}` is not a source of `{}`", shown(text.text()), shown(read));
        let help = format!("`from` takes {}", keys::FROM.kind.takes());
        report.add(Finding::new(&code::EXPORTER, at, message).help(help));
    }
    let (capacity, idle) = (values.get(&keys::CAPACITY).map(Value::number), values.of(&keys::IDLE));
    let idle = idle.number();
    if capacity.is_some_and(|capacity| idle >= capacity) {
        let path = format!("resource.{}", shown(entry.name));
        let message = format!("`{path}.idle` {idle} is not less than `{path}.capacity`");
        let help = "set `idle` to less than `capacity`, in the same unit".to_string();
        let at = values.at(&keys::IDLE);
        report.add(Finding::new(&code::IDLE, at, message).help(help));
    }
    Resource { name: entry.name.to_string(), read: read.to_string(), from, capacity, idle }
}

fn from_where(text: &str) -> ReadFrom {
    if text.starts_with('/') {
        ReadFrom::ProcessFile(PathBuf::from(text))
    } else {
        ReadFrom::Exporter(text.to_string())
    }
}

/// Returns whether `read` names a metric that some host can have. The code that reads the metric
/// finds out whether this host has it.
fn is_of_this_host(read: &str) -> bool {
    if read == Resource::SLOTS {
        return true;
    }
    let parts: Vec<&str> = read.split('/').collect();
    match parts.as_slice() {
        ["host", "cpu"] | ["process", _, "cpu"] => true,
        ["host", "disk", name] => !name.is_empty(),
        ["host", "net", name, direction] => {
            !name.is_empty() && matches!(*direction, "sent" | "received")
        }
        ["host", "pressure", rest @ ..] => !rest.is_empty(),
        ["cgroup", path @ .., last] => {
            !path.is_empty() && matches!(*last, "cpu" | "read" | "written")
        }
        _ => false,
    }
}

/// Returns whether a text is acceptable as a reason: words on one line.
fn is_reason(why: &str) -> bool {
    let is_line = why.chars().count() <= 200 && !why.chars().any(char::is_control);
    is_line && why.chars().any(char::is_alphabetic)
}

fn is_exporter(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(0)),
        _ => (authority, 80_u16),
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    server::is_name(bare) && port != 0 && path.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns the rule of a `[throttle.NAME]` table, and its mode. `mode` is the default.
fn throttle(entry: &Entry<'_, '_>, mode: Mode, report: &mut Report) -> (Throttle, Mode) {
    let values = values_of(entry, &keys::THROTTLE, report);
    let pattern = values.of(&keys::THROTTLE_MATCH).text();
    if let Some((_, at)) = values.given(&keys::THROTTLE_MATCH) {
        check_pattern(&format!("throttle.{}.match", shown(entry.name)), pattern, at, report);
    }
    if let Some((why, at)) = values.given(&keys::WHY)
        && !is_reason(why.text())
    {
        let message = format!("`throttle.{}.why` is not a valid reason", shown(entry.name));
        let help = format!("`why` takes {}", keys::WHY.kind.takes());
        report.add(Finding::new(&code::WHY, at, message).help(help));
    }
    let rule = Rule {
        max_concurrency: values.of(&keys::MAX_CONCURRENCY).whole() as u32,
        rate: values.get(&keys::RATE).map(|rate| Rate::per_second(rate.number())),
        queue: values.of(&keys::THROTTLE_QUEUE).whole() as u32,
        wait: values.of(&keys::WAIT).span(),
    };
    let throttle = Throttle {
        pattern: pattern.to_string(),
        why: values.of(&keys::WHY).text().to_string(),
        rule,
        bytes: values.get(&keys::BYTES).map(Value::whole),
    };
    (throttle, values.get(&keys::THROTTLE_MODE).map_or(mode, Value::word))
}

fn check_pattern(path: &str, text: &str, at: Range<usize>, report: &mut Report) {
    if let Err(why) = text.parse::<Pattern>() {
        let message = format!("`{path}` \"{}\" is not a pattern of requests", shown(text));
        report.add(Finding::new(&code::REQUESTS, at, message).help(why.to_string()));
    }
}
