//! Resolves `[identify]`: sessions, their tokens, signals and retries.
//!
//! The token keys are read immediately. So an unusable key file is reported together with all other
//! problems, and a reload either has the keys or changes nothing.

use std::path::Path;

use bywash_token::{Keys, Secrets};
use bywash_units::Utility;
use toml::Spanned;

use super::server;
use crate::code;
use crate::config::ClassConfig;
use crate::identify::{Identify, RetryHeader, Session, Signal, Token};
use crate::keys;
use crate::mode::Mode;
use crate::read::Values;
use crate::report::{Finding, Report};
use crate::source::shown;
use crate::spelling;
use crate::token::is_token;

pub(super) fn identify(values: &Values, classes: &[ClassConfig], report: &mut Report) -> Identify {
    let identify = Identify {
        session: session(values, report),
        principal: values.of(&keys::PRINCIPAL).word(),
        token: token(values, report),
        signals: signals(values, report),
        populations: values.of(&keys::POPULATIONS).truth(),
        retries: retries(values, report),
    };
    check_cookies(values, &identify, report);
    check_tokens(values, &identify, classes, report);
    check_returning(values, &identify, classes, report);
    identify
}

fn session(values: &Values, report: &mut Report) -> Session {
    let text = values.of(&keys::SESSION).text();
    match text {
        "none" => return Session::None,
        "auto" => return Session::Auto,
        "token" => return Session::Token,
        _ => {}
    }
    let name = text.strip_prefix("cookie:").filter(|name| is_token(name));
    if name.is_none() {
        let takes = keys::SESSION.kind.takes();
        let message = format!("`identify.session` takes {takes}, not \"{}\"", shown(text));
        let at = values.at(&keys::SESSION);
        report.add(Finding::new(&code::SESSION, at, message).help(meant_session(text)));
    }
    name.map_or(Session::None, |name| Session::Cookie(name.to_string()))
}

fn meant_session(text: &str) -> Option<String> {
    let name = text.strip_prefix("cookie:").unwrap_or(text);
    let name: String = name.chars().filter(|c| is_token(&c.to_string())).collect();
    let meant = || {
        format!(
            "did you mean \"cookie:{}\"? The name of a cookie is a token (RFC 9110)",
            shown(&name)
        )
    };
    spelling::did_you_mean(text, ["none", "auto"]).or_else(|| (!name.is_empty()).then(meant))
}

fn token(values: &Values, report: &mut Report) -> Option<Token> {
    let cookie = token_cookie(values, report);
    let (value, at) = values.given(&keys::TOKEN_KEYS)?;
    let file = Path::new(value.text());
    match token_keys(file) {
        Ok(keys) => Some(Token { cookie, file: file.into(), keys }),
        Err(why) => {
            let message = format!("cannot use `identify.token_keys`: {}", shown(&why));
            let help = "make the file with `bywash token-keys`, and let only the gateway's user \
                        read it";
            report.add(Finding::new(&code::TOKEN_KEYS, at, message).help(help.to_string()));
            None
        }
    }
}

/// Reads the token keys from a file. The error never contains anything from the file.
fn token_keys(path: &Path) -> Result<Keys, String> {
    let text = bywash_files::secret(path).map_err(|why| why.to_string())?;
    let secrets = Secrets::parse(&text).map_err(|fault| fault.to_string())?;
    Ok(Keys::new(&secrets))
}

fn token_cookie(values: &Values, report: &mut Report) -> String {
    let name = values.of(&keys::TOKEN_COOKIE).text();
    if !is_token(name) {
        let message =
            format!("`identify.token_cookie` takes the name of a cookie, not \"{}\"", shown(name));
        let help = "use letters, digits, - and _, like \"bywash\"".to_string();
        let at = values.at(&keys::TOKEN_COOKIE);
        report.add(Finding::new(&code::TOKEN_COOKIE, at, message).help(help));
    }
    name.to_string()
}

/// Checks that the token cookie differs from the session cookie, because the gateway removes the
/// token cookie from requests.
fn check_cookies(values: &Values, identify: &Identify, report: &mut Report) {
    let name = values.of(&keys::TOKEN_COOKIE).text();
    if identify.session == Session::Cookie(name.to_string()) {
        let message = "`identify.token_cookie` is the cookie of the application's sessions";
        let help = "choose another name: the gateway removes this cookie, so the application \
                    would not get its own"
            .to_string();
        let at = values.at(&keys::TOKEN_COOKIE);
        report.add(Finding::new(&code::TOKEN_COOKIE, at, message.to_string()).help(help));
    }
}

fn check_tokens(
    values: &Values,
    identify: &Identify,
    classes: &[ClassConfig],
    report: &mut Report,
) {
    let at = values.at(&keys::SESSION);
    let keys = values.given(&keys::TOKEN_KEYS);
    match (&identify.session, keys) {
        (Session::Token, None) if !values.refused(&keys::TOKEN_KEYS) => {
            let message = "`identify.session` is the token, and there are no keys to sign it";
            let help =
                format!("write {}, a file that `bywash token-keys` makes", keys::TOKEN_KEYS.line());
            report.add(Finding::new(&code::NO_TOKEN_KEYS, at, message.to_string()).help(help));
        }
        (Session::Token, _) if classes.iter().all(|class| class.mode == Mode::Observe) => {
            let message =
                "`identify.session` is the token, and no class gives one: all classes only observe";
            let help = "there are no sessions until a class is in mode enforce".to_string();
            report.add(Finding::new(&code::NO_TOKENS, at, message.to_string()).help(help));
        }
        (Session::None, Some((_, at))) if text_of_session(values) == "none" => {
            let message = "`identify.token_keys` has no effect: there are no sessions";
            let help = "write session = \"token\" to make the token the session, or remove \
                        `token_keys`"
                .to_string();
            report.add(Finding::new(&code::TOKEN_UNUSED, at, message.to_string()).help(help));
        }
        (Session::None | Session::Cookie(_) | Session::Auto | Session::Token, _) => {}
    }
}

fn text_of_session(values: &Values) -> &str {
    values.of(&keys::SESSION).text()
}

fn check_returning(
    values: &Values,
    identify: &Identify,
    classes: &[ClassConfig],
    report: &mut Report,
) {
    if !identify.signals.contains(&Signal::Returning) || values.refused(&keys::TOKEN_KEYS) {
        return;
    }
    let has_revenue = classes.iter().any(|class| class.class.revenue > Utility::default());
    let help = match (values.given(&keys::TOKEN_KEYS), has_revenue) {
        (None, _) => {
            format!("write {}, a file that `bywash token-keys` makes", keys::TOKEN_KEYS.line())
        }
        (Some(_), false) => "set `revenue` of the class that is an order".to_string(),
        (Some(_), true) => return,
    };
    let message = "no client can show the signal `returning`, which a token from an earlier order \
                   proves";
    let at = values.at(&keys::SIGNALS);
    report.add(Finding::new(&code::NEVER_RETURNING, at, message.to_string()).help(help));
}

fn signals(values: &Values, report: &mut Report) -> Vec<Signal> {
    let mut found: Vec<Signal> = Vec::new();
    for text in values.of(&keys::SIGNALS).texts() {
        match signal(text.get_ref()) {
            Some(signal) if !found.contains(&signal) => found.push(signal),
            Some(_) => report.add(no_signal(text, "is listed twice", "remove one of them")),
            None => report.add(no_signal(text, "is not valid", SIGNALS_ARE)),
        }
    }
    found
}

const SIGNALS_ARE: &str = "write cookie:NAME, cookie:NAME=VALUE, header:NAME, referrer:HOST or \
                           returning";

fn no_signal(text: &Spanned<String>, why: &str, help: &str) -> Finding {
    let message = format!("the signal \"{}\" {why}", shown(text.get_ref()));
    let help =
        spelling::did_you_mean(text.get_ref(), ["returning"]).unwrap_or_else(|| help.to_string());
    Finding::new(&code::SIGNAL, text.span(), message).help(help)
}

fn signal(text: &str) -> Option<Signal> {
    if text == "returning" {
        return Some(Signal::Returning);
    }
    let (kind, what) = text.split_once(':')?;
    match kind {
        "cookie" => match what.split_once('=') {
            Some((name, value)) if is_token(name) && is_cookie_value(value) => {
                Some(Signal::CookieValue(name.to_string(), value.to_string()))
            }
            None if is_token(what) => Some(Signal::Cookie(what.to_string())),
            Some(_) | None => None,
        },
        "header" if is_token(what) => Some(Signal::Header(what.to_ascii_lowercase())),
        "referrer" if server::is_name(what) => Some(Signal::Referrer(what.to_ascii_lowercase())),
        _ => None,
    }
}

/// Returns whether a text is a cookie value of RFC 6265 §4.1.1, without quotes.
fn is_cookie_value(text: &str) -> bool {
    let is_octet = |byte: u8| byte.is_ascii_graphic() && !b"\",;\\".contains(&byte);
    !text.is_empty() && text.bytes().all(is_octet)
}

fn retries(values: &Values, report: &mut Report) -> Vec<RetryHeader> {
    let mut found = Vec::new();
    for text in values.of(&keys::RETRY_HEADERS).texts() {
        if let Some(header) = retry_header(text.get_ref()) {
            found.push(header);
        } else {
            report.add(no_retry_header(text));
        }
    }
    found
}

fn no_retry_header(text: &Spanned<String>) -> Finding {
    let message = format!("\"{}\" is not a header field with a number", shown(text.get_ref()));
    let name = text.get_ref().split('>').next().filter(|name| is_token(name));
    let name = name.unwrap_or("x-retry-count");
    let help = format!("write \"{}>0\" for a field that counts retries", shown(name));
    Finding::new(&code::RETRY_HEADER, text.span(), message).help(help)
}

fn retry_header(text: &str) -> Option<RetryHeader> {
    let (name, number) = text.split_once('>')?;
    let digits =
        (1..=3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let above = number.parse().ok().filter(|_| digits && is_token(name))?;
    Some(RetryHeader { name: name.to_ascii_lowercase(), above })
}
