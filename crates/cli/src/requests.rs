//! `bywash tap` and `bywash explain`: single requests, as they end and afterwards.

use std::fmt::Write;

use bywash_command::Failure;
use bywash_command::admin_client;
use bywash_command::plain_value as plain;
use bywash_command::request_text::explained;
use bywash_command::streams::{print, print_json};
use bywash_terminal::text::printable_json;
use serde_json::Value;

use crate::args::{Explain, Tap};

/// Prints requests as they end.
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

fn one_line(line: &str) -> String {
    let entry: Value = serde_json::from_str(line).unwrap_or_default();
    let text = |name: &str| plain(&entry[name]);
    if !entry["fault"].is_null() {
        return format!(
            "{:>3} {:<15} malformed: {}",
            text("status"),
            text("client"),
            text("fault")
        );
    }
    let ms = |name: &str| entry[name].as_u64().unwrap_or(0) as f64 / 1e3;
    let is_carried_out = entry["mode"] != "observe" || entry["decision"] == "run";
    format!(
        "{:>3} {:<14} {:<15} {}{} waited {:.1} ms, ran {:.1} ms  {} {}  [{}]",
        text("status"),
        text("outcome"),
        text("class"),
        text("reason"),
        if is_carried_out { "" } else { " (only observed)" },
        ms("queue_wait_us"),
        ms("service_us"),
        text("method"),
        text("target"),
        text("request"),
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
    let entry = admin_client::get(&args.which, &format!("/v1/requests/{name}"))?;
    if args.json { print_json(&entry) } else { print(&explained(&entry)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(mode: &str, decision: &str) -> String {
        one_line(&format!(
            r#"{{"status":200,"outcome":"served","reason":"queue_full","mode":"{mode}","decision":"{decision}"}}"#
        ))
    }

    #[test]
    fn what_was_decided_and_not_carried_out_is_marked() {
        assert!(line("observe", "shed").contains("queue_full (only observed) waited"));
        for carried_out in [line("enforce", "shed"), line("observe", "run")] {
            assert!(!carried_out.contains("observed"), "{carried_out}");
        }
    }
}
