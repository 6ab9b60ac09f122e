//! Reads the signals in a request about its visitor, and whether it is marked as a repetition.
//!
//! Any client can send a signal. That does no harm, because the gateway measures the value of each
//! signal, and the value falls as more clients fake it. A request that is marked as a repetition is
//! ranked lower.

use bywash_config::{RetryHeader, Signal};
use bywash_engine::Signals;
use bywash_message::{Fields, Name};

use crate::identity::cookies;

/// Returns the signals of a request, by their positions in the configured list `kinds`. `returns`
/// says whether the request's token proves that the visitor has ordered recently.
pub(super) fn shown(kinds: &[Signal], fields: &Fields, returns: bool) -> Signals {
    let is_shown = |kind: &Signal| match kind {
        Signal::Cookie(name) => cookies::request_cookie(fields, name).is_some(),
        Signal::CookieValue(name, value) => {
            cookies::request_cookie(fields, name) == Some(value.as_bytes())
        }
        Signal::Header(name) => fields.named(name.as_bytes()).next().is_some(),
        Signal::Referrer(host) => comes_from(fields, host.as_bytes()),
        Signal::Returning => returns,
    };
    let numbered = kinds.iter().enumerate().take(Signals::KINDS);
    let shown = numbered.filter(|(_, kind)| is_shown(kind));
    shown.fold(Signals::NONE, |signals, (number, _)| signals.with(number))
}

/// Returns whether the `Referer` is a page of this host or of a subdomain.
fn comes_from(fields: &Fields, host: &[u8]) -> bool {
    let Some(from) = fields.get(Name::Referer).and_then(host_of) else { return false };
    let Some(above) = from.len().checked_sub(host.len()) else { return false };
    let is_below = above == 0 || from[above - 1] == b'.';
    is_below && from[above..].eq_ignore_ascii_case(host)
}

/// Returns the host of an `http` or `https` URL. Returns `None` for any other text.
fn host_of(url: &[u8]) -> Option<&[u8]> {
    let schemes = [&b"https://"[..], b"http://"];
    let is_it = |scheme: &&&[u8]| {
        url.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    };
    let rest = &url[schemes.iter().find(is_it)?.len()..];
    let authority = rest.split(|byte| b"/?#\\".contains(byte)).next()?;
    let place = authority.rsplit(|byte| *byte == b'@').next()?;
    match place.strip_prefix(b"[") {
        Some(bracketed) => bracketed.split(|byte| *byte == b']').next(),
        None => place.split(|byte| *byte == b':').next(),
    }
}

/// Returns whether one of the configured fields marks the request as a repetition.
pub(super) fn is_retry(headers: &[RetryHeader], fields: &Fields) -> bool {
    let says = |spelled: &[u8], value: &[u8]| {
        let is_it = |header: &&RetryHeader| spelled.eq_ignore_ascii_case(header.name.as_bytes());
        let header = headers.iter().find(is_it);
        header.is_some_and(|header| number(value).is_some_and(|number| number > header.above))
    };
    let unnamed = fields.iter().filter(|field| field.name == Name::Other);
    !headers.is_empty() && unnamed.into_iter().any(|field| says(field.spelled, field.value))
}

/// Parses a number of at most nine digits, which is enough for any count of attempts.
fn number(text: &[u8]) -> Option<u32> {
    let digits = !text.is_empty() && text.len() <= 9 && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::fields;
    use super::*;

    #[test]
    fn a_signal_has_the_number_of_its_place() {
        let kinds = [
            Signal::Cookie("cart".into()),
            Signal::CookieValue("level".into(), "gold".into()),
            Signal::Header("x-app".into()),
            Signal::Referrer("mail.example".into()),
        ];
        let shown =
            |lines: &[(&str, &str)], returns| shown(&kinds, &fields(lines), returns).index();
        assert_eq!(shown(&[], false), 0);
        assert_eq!(shown(&[("Cookie", "a=1; cart=3")], false), 0b1);
        assert_eq!(shown(&[("Cookie", "cart=; level=gold")], false), 0b10);
        assert_eq!(shown(&[("Cookie", "level=golden"), ("X-APP", "")], false), 0b100);
        assert_eq!(shown(&[("Referer", "https://mail.example/?x")], true), 0b1000);
    }

    #[test]
    fn who_returns_is_known_by_the_token_alone() {
        let shown = |returns| shown(&[Signal::Returning], &fields(&[]), returns).index();
        assert_eq!([shown(false), shown(true)], [0, 1]);
    }

    #[test]
    fn who_comes_from_a_host_is_known_by_the_whole_name() {
        let comes = |from: &str| comes_from(&fields(&[("Referer", from)]), b"a.example");
        for from in [
            "https://a.example",
            "HTTP://A.Example:8080/x",
            "https://www.a.example/#x",
            "http://user:word@a.example/",
        ] {
            assert!(comes(from), "{from}");
        }
        for from in [
            "",
            "a.example",
            "ftp://a.example",
            "https://xa.example",
            "https://a.example.net/",
            "https://b.example/a.example",
            "https://a.example@b.example/",
            "https://b.example\\@a.example/",
            "https://b.example?@a.example",
        ] {
            assert!(!comes(from), "{from}");
        }
    }

    #[test]
    fn a_repetition_is_one_whose_number_is_greater() {
        let header = |name: &str, above| RetryHeader { name: name.into(), above };
        let headers = [header("x-try", 1), header("x-again", 0)];
        let retry = |name, value| is_retry(&headers, &fields(&[("Host", "a"), (name, value)]));
        for (name, value) in [("X-Try", "2"), ("x-again", "1"), ("x-again", "007")] {
            assert!(retry(name, value), "{name}: {value}");
        }
        for (name, value) in [
            ("x-try", "1"),
            ("x-again", "0"),
            ("x-again", ""),
            ("x-again", "yes"),
            ("x-again", "-1"),
            ("x-again", "1/50"),
            ("x-again", "99999999999"),
            ("x-again2", "1"),
        ] {
            assert!(!retry(name, value), "{name}: {value}");
        }
        assert!(!is_retry(&[], &fields(&[("x-again", "1")])));
    }
}
