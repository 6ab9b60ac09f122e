//! Resolves the values of a file into a [`Config`], and checks the values against each other.

mod agents;
mod answers;
mod classes;
mod concurrency;
mod elephants;
mod fields;
mod fleet;
mod health;
mod identify;
mod levels;
mod listen;
mod policy;
mod scheduler;
mod server;
mod stopd;
mod terminate;
mod timeouts;
mod tls;
mod upstream;

use std::hash::Hasher;

use bywash_engine::catalog::LimitSettings;
use bywash_engine::{Learn, Options};
use bywash_units::Ratio;
use siphasher::sip::SipHasher13;
use toml::Spanned;

use crate::code;
use crate::config::{AccessLog, ClientLimits, Config, Queue, State, Stop};
use crate::document::Document;
use crate::keys;
use crate::read::Values;
use crate::report::{Finding, Report};
use crate::size;
use crate::source::shown;
use crate::spelling;
use crate::stopd::Stopd;
use crate::upstream::Collector;

use classes::Inherited;

use stopd::stopd;

/// Returns the configuration of a document. Every problem is reported, and a default replaces the
/// unusable value.
pub(crate) fn config(document: &Document<'_>, report: &mut Report) -> Config {
    let root = document.section(&keys::ROOT, report);
    let mode = root.of(&keys::MODE).word();
    let listeners = document.section(&keys::LISTEN, report);
    let listen = listen::listen(&listeners, report);
    let (upstream, limit) = upstream::upstream(document, &listen, report);
    let queue = document.section(&keys::QUEUE, report);
    let identify = document.section(&keys::IDENTIFY, report);
    let log = document.section(&keys::LOG, report);
    let level_values = document.section(&keys::LEVELS, report);
    let names = levels::names(&level_values, report);
    let client_limits = document.section(&keys::CLIENT_LIMITS, report);
    let client_limits = self::client_limits(&client_limits, report);
    let file = Inherited {
        mode,
        timeouts: upstream.timeouts,
        ignore_case: upstream.ignore_case,
        max_body_bytes: client_limits.max_body_bytes,
        names: &names,
    };
    let (classes, classifier) = classes::classes(document, &file, report);
    let options = options(limit, &queue, &identify, &document.section(&keys::LEARN, report));
    let identify = identify::identify(&identify, &classes, report);
    Config {
        file: None,
        hash: String::new(),
        mode,
        tls: tls::tls(document, &listeners, report),
        listen,
        scheduler: scheduler::settings(document, &classes, report),
        engine: Options { termination: terminate::settings(document, report), ..options.clone() },
        upstream,
        queue: buffers(&queue, report),
        levels: levels::levels(&level_values, names, &listeners, &identify, report),
        agents: agents::agents(document, &identify, report),
        identify,
        client_limits,
        answers: answers::answers(document, report),
        access_log: access_log(&log, report),
        traces: traces(&log, report),
        state: state(&document.section(&keys::STATE, report)),
        results: results(&document.section(&keys::CONSOLE, report)),
        stop: stop(&document.section(&keys::STOP, report)),
        fleet: fleet::fleet(document, &options.limit, report),
        stopd: stopd(document, mode, report),
        elephants: elephants::elephants(document, mode, report),
        classes,
        classifier,
    }
}

/// Returns the part of a document that the stop daemon needs. Every problem is reported.
pub(crate) fn stopd_of(document: &Document<'_>, report: &mut Report) -> Stopd {
    let root = document.section(&keys::ROOT, report);
    let stopd = stopd(document, root.of(&keys::MODE).word(), report);
    if stopd.socket.is_none() {
        let table = document.section(&keys::STOPD, report);
        if table.given(&keys::SOCKET).is_none() {
            let message =
                "`stopd.socket` is missing: the stop daemon would get no notifications".to_string();
            let help = format!("write {} under [stopd]", keys::SOCKET.line());
            report.add(Finding::new(&code::MISSING, table.table(), message).help(help));
        }
    }
    stopd
}

fn options(limit: LimitSettings, queue: &Values, identify: &Values, learn: &Values) -> Options {
    let signals = identify.of(&keys::SIGNALS).texts();
    Options {
        limit,
        max_wait: Some(queue.of(&keys::MAX_WAIT).span()),
        sessions: identify.of(&keys::SESSIONS).whole() as u32,
        session_ttl: identify.of(&keys::SESSION_TTL).span(),
        retry_window: identify.of(&keys::RETRY_WINDOW).span(),
        learn: Learn {
            half_life: learn.of(&keys::HALF_LIFE).span(),
            max_change_per_hour: learn.of(&keys::MAX_CHANGE_PER_HOUR).number(),
            orders: learn.of(&keys::ORDERS).whole() as u32,
            kinds: kinds_of(signals.iter().map(Spanned::get_ref)),
            ..Learn::default()
        },
        slow_share: Ratio::new(queue.of(&keys::SLOW_SHARE).number()),
        ..Options::default()
    }
}

/// Returns a hash of the list of signals. The hash is compared with hashes that other builds have
/// stored, so the hash function is a published one with fixed keys.
fn kinds_of<'a>(signals: impl Iterator<Item = &'a String>) -> u64 {
    let mut hasher = SipHasher13::new();
    for signal in signals {
        hasher.write(signal.as_bytes());
        hasher.write_u8(0xff);
    }
    hasher.finish()
}

fn buffers(values: &Values, report: &mut Report) -> Queue {
    let one = values.of(&keys::BODY_BUFFER).whole() as usize;
    let total = values.of(&keys::BODY_BUFFER_TOTAL).whole() as usize;
    if total < one {
        let message = "`queue.body_buffer_total` is smaller than `queue.body_buffer`".to_string();
        let at = values.at(&keys::BODY_BUFFER_TOTAL);
        let help = "set it to `body_buffer` or more, so that there is room for at least one body"
            .to_string();
        report.add(Finding::new(&code::BUFFERS, at, message).help(help));
    }
    let skip_files = values.of(&keys::SKIP_FILES).truth();
    Queue { body_buffer: one, body_buffer_total: total, skip_files }
}

fn client_limits(values: &Values, report: &mut Report) -> ClientLimits {
    ClientLimits {
        header_timeout: values.of(&keys::HEADER_TIMEOUT).span(),
        max_headers: values.of(&keys::MAX_HEADERS).whole() as usize,
        max_header_bytes: values.of(&keys::MAX_HEADER_BYTES).whole() as usize,
        max_uri_bytes: values.of(&keys::MAX_URI_BYTES).whole() as usize,
        connections: values.of(&keys::CONNECTIONS).whole() as usize,
        connections_per_address: values.of(&keys::CONNECTIONS_PER_ADDRESS).whole() as usize,
        max_body_bytes: values.of(&keys::MAX_BODY_BYTES).whole(),
        proven_reserve: values.of(&keys::PROVEN_RESERVE).whole() as u8,
        body_rate: values.of(&keys::BODY_RATE).whole(),
        streams: values.of(&keys::STREAMS).whole() as usize,
        observed: values.of(&keys::OBSERVED).whole() as usize,
        h2_streams: values.of(&keys::H2_STREAMS).whole() as u32,
        idle_timeout: values.of(&keys::CLIENT_IDLE_TIMEOUT).span(),
        memory: memory(values, report),
    }
}

/// Returns the memory limit in bytes; `None` for `"auto"`.
fn memory(values: &Values, report: &mut Report) -> Option<u64> {
    let text = values.of(&keys::MEMORY).text();
    if text == "auto" {
        return None;
    }
    let bytes =
        size::parse(text).filter(|bytes| (keys::LEAST_MEMORY..=keys::MOST_MEMORY).contains(bytes));
    if bytes.is_none() {
        let message = format!(
            "`client_limits.memory` takes \"auto\" or a size from 16MiB to 1024GiB, not \"{}\"",
            shown(text)
        );
        let guess = size::guess(text).filter(|guess| guess != text);
        let help = guess.map_or("write \"auto\" or a size".to_string(), |size| {
            format!("did you mean \"{size}\"?")
        });
        report.add(Finding::new(&code::BAD_VALUE, values.at(&keys::MEMORY), message).help(help));
    }
    bytes
}

fn state(values: &Values) -> Option<State> {
    let directory = values.get(&keys::DIRECTORY)?.text().into();
    Some(State { directory, save_every: values.of(&keys::SAVE_EVERY).span() })
}

fn results(values: &Values) -> Option<std::path::PathBuf> {
    values.get(&keys::RESULTS).map(|path| path.text().into())
}

fn stop(values: &Values) -> Stop {
    Stop { grace: values.of(&keys::GRACE).span(), delay: values.of(&keys::DELAY).span() }
}

fn traces(values: &Values, report: &mut Report) -> Option<Collector> {
    let (value, at) = values.given(&keys::TRACES)?;
    let collector = server::collector(value.text());
    if let Err(no) = &collector {
        let message = format!("`log.traces` \"{}\": {}", shown(value.text()), no.why);
        report.add(Finding::new(&code::TRACES, at, message).help(no.help.clone()));
    }
    collector.ok()
}

/// Returns the destination of the access log. A path must contain a slash, so that `stdot` is
/// reported as a mistake and not used as a file name.
fn access_log(values: &Values, report: &mut Report) -> AccessLog {
    match values.of(&keys::ACCESS).text() {
        "stdout" => AccessLog::Stdout,
        "off" => AccessLog::Off,
        path if path.contains('/') && !path.contains(char::is_control) => {
            AccessLog::File(path.into())
        }
        other => {
            let text = shown(other);
            let message = format!("`log.access` takes stdout, off or a path, not \"{text}\"");
            let help = spelling::did_you_mean(other, ["stdout", "off"])
                .unwrap_or_else(|| format!("for a file of that name write \"./{text}\""));
            let at = values.at(&keys::ACCESS);
            report.add(Finding::new(&code::ACCESS_LOG, at, message).help(help));
            AccessLog::Off
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_signals_has_the_same_number_in_every_build() {
        let number = |signals: &[&str]| {
            let signals: Vec<String> = signals.iter().map(|signal| (*signal).to_string()).collect();
            kinds_of(signals.iter())
        };
        assert_eq!(number(&["cookie:cart", "returning"]), 0x4d29_9118_a003_be20);
        assert_eq!(number(&["cookie:ca", "rtreturning"]), 0xaafc_af6e_f92f_e9f3);
    }
}
