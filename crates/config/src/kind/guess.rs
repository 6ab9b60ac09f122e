//! Guesses the value that was meant by a rejected one.

use std::fmt::Display;
use std::net::IpAddr;

use bywash_units::TimeSpan;
use toml::de::DeValue;

use super::{ValueKind, span_text};
use crate::size;
use crate::socket;
use crate::source::shown;
use crate::spelling::{LONGEST, did_you_mean};

/// Returns the help text for a rejected value; `None` if no guess is possible.
pub(crate) fn value(kind: &ValueKind, given: &DeValue<'_>) -> Option<String> {
    let text = match given {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(n) => n.to_string(),
        DeValue::Float(x) => x.to_string(),
        DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
            return None;
        }
    };
    let text = text.trim();
    if text.len() > LONGEST { None } else { of_text(kind, text) }
}

fn of_text(kind: &ValueKind, given: &str) -> Option<String> {
    match kind {
        ValueKind::Exactly(only) => Some(format!("this bywash reads version {only}")),
        ValueKind::Whole { min, max } => {
            let meant = given.parse::<f64>().ok().filter(|x| !x.is_nan())?.round();
            Some(bounded(meant, meant as u64, *min, *max))
        }
        ValueKind::Number { min, max } => {
            let meant = number(given)?;
            Some(bounded(meant, meant, *min, *max))
        }
        ValueKind::TimeSpan { min, max } => span(given, *min, *max),
        ValueKind::Bytes { min, max } => bytes(given, *min, *max),
        ValueKind::Word(_) | ValueKind::Policy(_) => did_you_mean(given, kind.words()),
        ValueKind::Truth => truth(given),
        ValueKind::Address => address(given).map(meant),
        ValueKind::Admin => admin(given).map(meant),
        ValueKind::Text { .. } | ValueKind::Texts { alone: true, .. } => {
            Some(format!("write {}", quote(given)))
        }
        ValueKind::Path => path(given),
        ValueKind::Texts { .. } | ValueKind::Paths { .. } => {
            Some(format!("write a list: [{}]", quote(given)))
        }
    }
}

fn truth(given: &str) -> Option<String> {
    let meant = match given.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => "true",
        "false" | "off" | "no" | "0" => "false",
        _ => return None,
    };
    Some(format!("write {meant}, without quotes"))
}

fn admin(given: &str) -> Option<String> {
    let path = given.strip_prefix(socket::PREFIX);
    let path = path.or_else(|| given.starts_with('/').then_some(given));
    match path {
        Some(path) if socket::path(path).is_ok() => Some(format!("{}{path}", socket::PREFIX)),
        Some(path) => socket::meant(path),
        None => address(given),
    }
}

fn path(given: &str) -> Option<String> {
    let plain = given.replace(char::is_control, "");
    (!plain.is_empty()).then(|| format!("write {}", quote(&plain)))
}

fn number(given: &str) -> Option<f64> {
    let number: f64 = match given.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => given.parse().ok()?,
    };
    Some(number).filter(|number| !number.is_nan())
}

/// Returns the help text for a number that is out of range, or that is not written as a number.
/// `exact` is the value that was meant, and `meant` the same value in the type of the key.
fn bounded<T: Copy + PartialOrd + Display>(exact: f64, meant: T, min: T, max: T) -> String {
    if exact < 0.0 || meant < min {
        format!("the nearest allowed value is {min}")
    } else if meant > max {
        format!("the nearest allowed value is {max}")
    } else {
        format!("write {meant}, without quotes")
    }
}

/// The units in common spellings, each with its correct form. A longer spelling comes before its
/// own prefixes.
const UNITS: [(&str, &str); 7] =
    [("mil", "ms"), ("ms", "ms"), ("us", "us"), ("ns", "ns"), ("s", "s"), ("m", "m"), ("h", "h")];

fn span(given: &str, min: TimeSpan, max: TimeSpan) -> Option<String> {
    let unit = given.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(given.len());
    let (number, unit) = given.split_at(unit);
    let unit = unit.trim().to_ascii_lowercase();
    let known = UNITS.iter().find(|(name, _)| unit.starts_with(name)).map(|(_, unit)| *unit);
    let text = format!("{number}{}", if unit.is_empty() { "s" } else { known? });
    let span: TimeSpan = text.parse().ok()?;
    let nearest = span.clamp_to(min, max);
    Some(if nearest == span { meant(text) } else { nearest_is(&span_text(nearest)) })
}

fn bytes(given: &str, min: u64, max: u64) -> Option<String> {
    let text = size::guess(given)?;
    let bytes = size::parse(&text)?;
    let nearest = bytes.clamp(min, max);
    Some(if nearest == bytes { meant(text) } else { nearest_is(&size::text(nearest)) })
}

fn address(given: &str) -> Option<String> {
    let (host, port) = given.rsplit_once(':').unwrap_or(("", given));
    if let Ok(ip) = given.parse::<IpAddr>() {
        return Some(format!(
            "{}:8080",
            if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() }
        ));
    }
    let port: u16 = port.parse().ok()?;
    match host {
        "" | "localhost" => Some(format!("127.0.0.1:{port}")),
        "*" => Some(format!("0.0.0.0:{port}")),
        _ => None,
    }
}

fn meant(text: impl AsRef<str>) -> String {
    format!("did you mean {}?", quote(text.as_ref()))
}

fn nearest_is(text: &str) -> String {
    format!("the nearest allowed value is {}", quote(text))
}

fn quote(text: &str) -> String {
    format!("\"{}\"", shown(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_everyday_writing_are_understood() {
        let (min, max) = (TimeSpan::from_millis(10), TimeSpan::from_secs(3600));
        let cases =
            [("20", "20s"), ("20 sec", "20s"), ("5 minutes", "5m"), ("250 millis", "250ms")];
        for (given, meant) in cases {
            let expected = Some(format!("did you mean \"{meant}\"?"));
            assert_eq!(span(given, min, max), expected, "{given}");
        }
        assert_eq!(span("2h", min, max).as_deref(), Some("the nearest allowed value is \"1h\""));
        assert_eq!(span("1ms", min, max).as_deref(), Some("the nearest allowed value is \"10ms\""));
        assert_eq!(span("soon", min, max), None);
    }

    #[test]
    fn half_an_address_is_completed() {
        let cases =
            [(":80", "127.0.0.1:80"), ("localhost:80", "127.0.0.1:80"), ("::1", "[::1]:8080")];
        for (given, meant) in cases {
            assert_eq!(address(given).as_deref(), Some(meant));
        }
        assert_eq!(address("example.org:80"), None);
    }
}
