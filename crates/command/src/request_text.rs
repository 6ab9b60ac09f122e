//! Formats the explanation of a decision about a request as text.

use std::fmt::Write;

use bywash_api::{Explained, Request};
use bywash_terminal::text::escaped;

/// Formats the answer of `/v1/requests/ID` as text.
pub fn explained(entry: &Explained) -> String {
    let Explained { request: Request { client, status, life, .. }, explanation } = entry;
    let client = escaped(client);
    let Some(life) = life else {
        return format!("{client} sent a malformed message, so there is no decision to explain\n");
    };
    let word = |word: Option<&str>| word.map_or("-".to_owned(), escaped);
    let decision = match life.decision.as_deref() {
        Some("run") => "was given a slot",
        Some("shed") => "was refused",
        Some("stop") => "was stopped",
        Some(_) => "would still have been waiting when it was answered",
        None => "got no decision: the gateway was bypassed, or its client had left",
    };
    let level = life.level.as_deref();
    let level = level.map_or_else(String::new, |level| format!(", level {}", escaped(level)));
    let observed = if life.mode == "observe" { " (only observed: this had no effect)" } else { "" };
    let agent = life.agent.as_ref();
    let agent = agent.map_or_else(String::new, |name| format!(", agent {}", escaped(name)));
    let population = life.population.as_ref().zip(life.population_level);
    let population = population.map_or_else(String::new, |(name, level)| {
        format!(", population {} (level {level})", escaped(name))
    });
    let mut words = format!(
        "{} {} {} from {client}\nclass {}{level}, session {}, standing {}{agent}{population}\n\
         It {decision}{observed}",
        escaped(&life.method),
        escaped(&life.target),
        escaped(&life.protocol),
        escaped(&life.class),
        word(life.session.as_deref()),
        word(life.standing.as_deref()),
    );
    if let Some(explanation) = explanation {
        let _ = write!(words, ": {explanation} ({})", word(life.reason.as_deref()));
    }
    let _ = writeln!(
        words,
        "\nIt waited {:.1} ms and ran {:.1} ms; outcome {}, status {}",
        life.queue_wait_us as f64 / 1e3,
        life.service_us as f64 / 1e3,
        escaped(&life.outcome),
        status.map_or("-".to_owned(), |status| status.to_string()),
    );
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn explanation_of([decision, reason, explanation]: [Option<&str>; 3]) -> String {
        let entry = json!({
            "time": 1, "client": "192.0.2.7", "status": null, "request": "00000000000000aa",
            "method": "GET", "target": "/a\u{9b}", "protocol": "HTTP/2", "class": "search",
            "level": "gold", "session": null, "standing": "new", "mode": "observe",
            "decision": decision, "reason": reason, "outcome": "orphaned", "queue_wait_us": 1500,
            "service_us": 0, "server": null, "rule": null, "request_bytes": 0,
            "response_bytes": 0, "explanation": explanation
        });
        explained(&serde_json::from_value(entry).unwrap())
    }

    #[test]
    fn a_decision_is_told_with_its_reason_and_an_unknown_value_is_a_dash() {
        let request = "GET /a\\u{9b} HTTP/2 from 192.0.2.7\n\
                       class search, level gold, session -, standing new\n";
        let end = "It waited 1.5 ms and ran 0.0 ms; outcome orphaned, status -\n";
        assert_eq!(
            explanation_of([Some("shed"), Some("queue_full"), Some("the queue was full")]),
            format!(
                "{request}It was refused (only observed: this had no effect): the queue was full \
                 (queue_full)\n{end}"
            )
        );
        assert_eq!(
            explanation_of([None, None, None]),
            format!(
                "{request}It got no decision: the gateway was bypassed, or its client had left \
                 (only observed: this had no effect)\n{end}"
            )
        );
    }
}
