//! Resolves `[health]`: the probe of servers, and when servers receive no requests.

use crate::code;
use crate::document::Document;
use crate::keys;
use crate::kind::span_text;
use crate::read::Values;
use crate::report::{Finding, Report};
use crate::source::shown;
use crate::upstream::Health;

/// The maximum length of a probe's path in bytes. Hardly any server has a lower limit.
const LONGEST: usize = 2048;

pub(super) fn health(document: &Document<'_>, report: &mut Report) -> Health {
    let values = document.section(&keys::HEALTH, report);
    check_pace(&values, report);
    Health {
        path: path(&values, report),
        interval: values.of(&keys::INTERVAL).span(),
        timeout: values.of(&keys::HEALTH_TIMEOUT).span(),
        rise: values.of(&keys::RISE).whole() as u32,
        fall: values.of(&keys::FALL).whole() as u32,
        eject_after: values.of(&keys::EJECT_AFTER).whole() as u32,
        eject_share: values.of(&keys::EJECT_SHARE).whole() as u32,
        eject_for: values.of(&keys::EJECT_FOR).span(),
        slow_start: values.of(&keys::SLOW_START).span(),
    }
}

/// Returns the path of the probe. The path becomes part of a request line, so it must not contain
/// characters that could end the line.
fn path(values: &Values, report: &mut Report) -> Option<String> {
    let (value, at) = values.given(&keys::HEALTH_PATH)?;
    let text = value.text();
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    if text.starts_with('/') && text.len() <= LONGEST && text.bytes().all(is_plain) {
        return Some(text.to_string());
    }
    let message = format!("`health.path` takes a path like /healthz, not \"{}\"", shown(text));
    let meant: String = text.bytes().filter(|byte| is_plain(*byte)).map(char::from).collect();
    let help = if text.contains("://") || text.len() > LONGEST {
        "write only the path: the servers are under [upstream]".to_string()
    } else {
        format!("did you mean \"/{}\"?", shown(meant.trim_start_matches('/')))
    };
    report.add(Finding::new(&code::HEALTH_PATH, at, message).help(help));
    None
}

fn check_pace(values: &Values, report: &mut Report) {
    let interval = values.of(&keys::INTERVAL).span();
    let timeout = values.of(&keys::HEALTH_TIMEOUT).span();
    if timeout < interval || values.refused(&keys::INTERVAL) {
        return;
    }
    let (interval, timeout) = (span_text(interval), span_text(timeout));
    let message = format!("`health.timeout` {timeout} is not shorter than `health.interval`");
    let help = format!("the gateway probes a server every {interval}: give it less time to answer");
    let key =
        [keys::HEALTH_TIMEOUT, keys::INTERVAL].into_iter().find(|key| values.given(key).is_some());
    let at = key.map_or_else(|| values.table(), |key| values.at(&key));
    report.add(Finding::new(&code::HEALTH_PACE, at, message).help(help));
}
