//! The explanation of a decision about a request, as text.

use std::fmt::Write;

use serde_json::Value;

use crate::plain::plain_value as plain;

/// Returns the explanation of `/v1/requests/ID` as text.
pub fn explained(entry: &Value) -> String {
    let text = |name: &str| plain(&entry[name]);
    let ms = |name: &str| entry[name].as_u64().unwrap_or(0) as f64 / 1e3;
    let decision = match entry["decision"].as_str() {
        Some("run") => "was given a slot",
        Some("shed") => "was refused",
        Some("stop") => "was stopped",
        Some(_) => "would still have been waiting when it was answered",
        None => "got no decision: the gateway was bypassed, or its client had left",
    };
    let level = match &entry["level"] {
        Value::Null => String::new(),
        level => format!(", level {}", plain(level)),
    };
    let observed =
        if entry["mode"] == "observe" { " (only observed: this had no effect)" } else { "" };
    let mut words = format!(
        "{} {} {} from {}\nclass {}{level}, session {}, standing {}\nIt {decision}{observed}",
        text("method"),
        text("target"),
        text("protocol"),
        text("client"),
        text("class"),
        text("session"),
        text("standing"),
    );
    if let Some(explanation) = entry["explanation"].as_str() {
        let _ = write!(words, ": {explanation} ({})", text("reason"));
    }
    let _ = writeln!(
        words,
        "\nIt waited {:.1} ms and ran {:.1} ms; outcome {}, status {}",
        ms("queue_wait_us"),
        ms("service_us"),
        text("outcome"),
        text("status"),
    );
    words
}
