//! `bywash tap` and `bywash explain`: single requests, as they end and afterwards.

use std::fmt::Write;

use bywash_api::Request;
use bywash_command::Failure;
use bywash_command::admin_client;
use bywash_command::request_text::explained;
use bywash_command::streams::{print, print_json};
use bywash_terminal::text::escaped;
use bywash_terminal::text::printable_json;

use crate::args::{Explain, Tap};

/// Prints requests as they end, until `--count` is reached or the process is stopped.
pub(crate) fn tap(args: &Tap) -> Result<(), Failure> {
    let mut seen = 0;
    admin_client::lines(&args.which, &format!("/v1/tap{}", filters(args)), |line| {
        let shown = if args.json { printable_json(line) } else { one_line(line) };
        print(&format!("{shown}\n"))?;
        seen += 1;
        Ok(args.count.is_none_or(|count| seen < count))
    })
}

fn filters(args: &Tap) -> String {
    let all = [
        ("class", args.class.clone()),
        ("level", args.level.clone()),
        ("outcome", args.outcome.clone()),
        ("reason", args.reason.clone()),
        ("standing", args.standing.clone()),
        ("status", args.status.map(|status| status.to_string())),
        ("client", args.client.map(|client| client.to_string())),
    ];
    let given = all.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let mut query = String::new();
    for (name, value) in given {
        let sign = if query.is_empty() { '?' } else { '&' };
        let _ = write!(query, "{sign}{name}=");
        for byte in value.bytes() {
            let _ = match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b':' => {
                    write!(query, "{}", char::from(byte))
                }
                byte => write!(query, "%{byte:02X}"),
            };
        }
    }
    query
}

/// Formats a request as one line of text. A line of the response that describes no request is
/// returned escaped.
fn one_line(line: &str) -> String {
    let Ok(Request { client, status, fault, life, .. }) = serde_json::from_str(line) else {
        return escaped(line);
    };
    let word = |word: Option<&str>| word.map_or("-".to_owned(), escaped);
    let status = status.map_or("-".to_owned(), |status| status.to_string());
    let Some(about) = life else {
        let fault = word(fault.as_deref());
        return format!("{status:>3} {:<15} malformed: {fault}", escaped(&client));
    };
    let is_carried_out = about.mode != "observe" || about.decision.as_deref() == Some("run");
    format!(
        "{status:>3} {:<14} {:<15} {}{} waited {:.1} ms, ran {:.1} ms  {} {}  [{}]",
        escaped(&about.outcome),
        escaped(&about.class),
        word(about.reason.as_deref()),
        if is_carried_out { "" } else { " (only observed)" },
        about.queue_wait_us as f64 / 1e3,
        about.service_us as f64 / 1e3,
        escaped(&about.method),
        escaped(&about.target),
        escaped(&about.request),
    )
}

/// Prints one request, and the reason of the decision about it.
pub(crate) fn explain(args: &Explain) -> Result<(), Failure> {
    let name = args.request.trim();
    if name.len() != 16 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let help = "from the access log or the field Bywash-Request";
        return Err(Failure::usage(format!(
            "the ID of a request is 16 hexadecimal digits, {help}"
        )));
    }
    let path = format!("/v1/requests/{name}");
    if args.json {
        return print_json(&admin_client::get(&args.which, &path)?);
    }
    print(&explained(&admin_client::get(&args.which, &path)?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(mode: &str, decision: &str) -> String {
        let request = json!({
            "time": 1, "client": "192.0.2.7", "status": 200, "request": "00000000000000aa",
            "method": "GET", "target": "/a\u{9b}", "protocol": "HTTP/2", "class": "search",
            "level": null, "session": null, "standing": null, "mode": mode, "decision": decision,
            "reason": "queue_full", "outcome": "served", "queue_wait_us": 1500, "service_us": 20,
            "server": null, "rule": null, "request_bytes": 0, "response_bytes": 0
        });
        one_line(&request.to_string())
    }

    #[test]
    fn what_was_decided_and_not_carried_out_is_marked() {
        assert_eq!(
            line("observe", "shed"),
            "200 served         search          queue_full (only observed) waited 1.5 ms, \
             ran 0.0 ms  GET /a\\u{9b}  [00000000000000aa]"
        );
        for carried_out in [line("enforce", "shed"), line("observe", "run")] {
            assert!(!carried_out.contains("observed"), "{carried_out}");
        }
    }

    #[test]
    fn a_malformed_message_has_no_decision() {
        let message = json!({ "time": 1, "client": "192.0.2.7", "status": 400, "fault": "head" });
        assert_eq!(one_line(&message.to_string()), "400 192.0.2.7       malformed: head");
    }
}
