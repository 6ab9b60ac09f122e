//! Resolves `[fleet]`.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;

use bywash_engine::catalog::LimitSettings;
use bywash_token::{FleetKeys, Secrets};

use crate::code;
use crate::document::Document;
use crate::fleet::{Credentials, Fleet};
use crate::key::Key;
use crate::keys;
use crate::read::Values;
use crate::report::{Finding, Report};
use crate::source::shown;
use crate::spelling;

/// The keys that have no effect without a name.
const OTHERS: [&Key; 8] = [
    &keys::GATEWAYS,
    &keys::LIVENESS,
    &keys::NATS_SERVERS,
    &keys::FLEET_KEY_FILE,
    &keys::NATS_USER,
    &keys::NATS_PASSWORD_FILE,
    &keys::NKEY_FILE,
    &keys::NATS_CA_FILE,
];

/// Returns the fleet; `None` if the gateway belongs to none or if the settings are invalid.
pub(super) fn fleet(
    document: &Document<'_>,
    limit: &LimitSettings,
    report: &mut Report,
) -> Option<Fleet> {
    let values = document.section(&keys::FLEET, report);
    let credentials = credentials(&values, report);
    let subject = text(&values, &keys::SUBJECT, "a subject of NATS", is_subject, report);
    let gateways = gateways(&values, report);
    let servers = servers(&values, report);
    let keys = keys(&values, report);
    let liveness = liveness(&values, gateways.as_deref(), report);
    let Some((_, at)) = values.given(&keys::FLEET_NAME) else {
        let given = |keys: &[&Key]| keys.iter().any(|key| values.given(key).is_some());
        // A value that was reported needs no second finding.
        let is_reported = given(&[&keys::GATEWAYS]) && gateways.is_none()
            || given(&[&keys::NATS_SERVERS]) && servers.is_none()
            || given(&[&keys::LIVENESS]) && liveness.is_empty()
            || given(&[&keys::NATS_USER, &keys::NATS_PASSWORD_FILE]) && credentials.is_none();
        let other = OTHERS.iter().find_map(|key| values.given(key));
        if let Some((_, at)) = other.filter(|_| !is_reported && !values.refused(&keys::FLEET_NAME))
        {
            missing(&keys::FLEET_NAME, at, "the gateway would belong to no fleet", report);
        }
        return None;
    };
    let name = text(&values, &keys::FLEET_NAME, "the name of a gateway", is_name, report)?;
    let needed = [
        (&keys::GATEWAYS, "the number of gateways is unknown"),
        (&keys::NATS_SERVERS, "there is no way to the other gateways"),
        (&keys::FLEET_KEY_FILE, "any program that reaches the NATS servers could take slots"),
    ];
    for (key, why) in needed {
        if values.given(key).is_none() && !values.refused(key) {
            missing(key, at.clone(), why, report);
        }
    }
    if let Some(gateways) = gateways.as_ref().filter(|gateways| !gateways.contains(&name)) {
        let message = format!("`fleet.name` \"{}\" is not in `fleet.gateways`", shown(&name));
        let help = spelling::did_you_mean(&name, gateways.iter().map(String::as_str))
            .unwrap_or_else(|| "add it to the list of every gateway".to_string());
        report.add(Finding::new(&code::FLEET, at.clone(), message).help(help));
    }
    if limit.name() != "fixed" {
        let message = "a fleet needs a fixed limit, and `concurrency.policy` is another";
        let help = "write the limit of all gateways together as `upstream.limit`".to_string();
        report.add(Finding::new(&code::FLEET, at, message.to_string()).help(help));
    }
    Some(Fleet {
        name,
        gateways: gateways?,
        liveness,
        servers: servers?,
        subject: subject?,
        keys: keys?,
        credentials,
        ca_file: path(&values, &keys::NATS_CA_FILE),
    })
}

/// Returns the text of a key that has one. A text that `is_right` rejects is reported.
fn text(
    values: &Values,
    key: &Key,
    takes: &str,
    is_right: fn(&str) -> bool,
    report: &mut Report,
) -> Option<String> {
    let text = values.of(key).text();
    if !is_right(text) {
        let message = format!("`fleet.{}`: \"{}\" is not {takes}", key.name, shown(text));
        let help = format!("write it like {}", key.line());
        report.add(Finding::new(&code::FLEET, values.at(key), message).help(help));
        return None;
    }
    Some(text.to_string())
}

/// Returns whether a text can name a gateway.
fn is_name(text: &str) -> bool {
    let is_first = |first: u8| first.is_ascii_lowercase() || first.is_ascii_digit();
    let is_part = |byte: u8| is_first(byte) || b"._-".contains(&byte);
    (1..=63).contains(&text.len()) && is_first(text.as_bytes()[0]) && text.bytes().all(is_part)
}

/// Returns whether a text is a subject of NATS without wildcards.
fn is_subject(text: &str) -> bool {
    let is_token = |token: &str| {
        !token.is_empty()
            && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    text.len() <= 200 && text.split('.').all(is_token)
}

fn is_user(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'?')
}

/// Returns whether a text is the URL of a NATS server: a scheme and an authority without user.
fn is_server(text: &str) -> bool {
    let rest = text.strip_prefix("nats://").or_else(|| text.strip_prefix("tls://"));
    rest.is_some_and(|rest| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:[]".contains(&byte);
        !rest.is_empty() && rest.bytes().all(is_part)
    })
}

/// Returns the texts of a list; `None` if there is none. Each that `is_right` rejects, and each that
/// comes twice, is reported, and the result is then `None`.
fn list(
    values: &Values,
    key: &Key,
    takes: &str,
    is_right: fn(&str) -> bool,
    report: &mut Report,
) -> Option<Vec<String>> {
    let (value, _) = values.given(key)?;
    let mut found: Vec<String> = Vec::new();
    for text in value.texts() {
        let why = match text.get_ref() {
            text if !is_right(text) => format!("is not {takes}"),
            text if found.contains(text) => "is listed twice".to_string(),
            text => {
                found.push(text.clone());
                continue;
            }
        };
        let message = format!("`fleet.{}`: \"{}\" {why}", key.name, shown(text.get_ref()));
        let help = format!("write {}", key.line());
        report.add(Finding::new(&code::FLEET, text.span(), message).help(help));
    }
    (found.len() == value.texts().len()).then_some(found)
}

fn gateways(values: &Values, report: &mut Report) -> Option<Vec<String>> {
    list(values, &keys::GATEWAYS, "the name of a gateway", is_name, report)
}

fn servers(values: &Values, report: &mut Report) -> Option<Vec<String>> {
    let takes = "nats://HOST:PORT or tls://HOST:PORT";
    let servers = list(values, &keys::NATS_SERVERS, takes, is_server, report)?;
    let encrypted = servers.iter().filter(|server| server.starts_with("tls://")).count();
    if (1..servers.len()).contains(&encrypted) {
        let message = "some of `fleet.servers` use TLS, and some do not";
        let help = "write tls:// for all of them, or nats:// for all".to_string();
        let at = values.at(&keys::NATS_SERVERS);
        report.add(Finding::new(&code::FLEET, at, message.to_string()).help(help));
    }
    Some(servers)
}

fn liveness(values: &Values, gateways: Option<&[String]>, report: &mut Report) -> Vec<SocketAddr> {
    let is_address = |text: &str| text.parse::<SocketAddr>().is_ok();
    let takes = "an IP address with a port";
    let addresses = list(values, &keys::LIVENESS, takes, is_address, report).unwrap_or_default();
    let count = addresses.len();
    if let Some(gateways) = gateways.filter(|gateways| count > 0 && gateways.len() != count) {
        let all = gateways.len();
        let message = format!("`fleet.liveness` has {count} addresses for {all} gateways");
        let help = "write one address for each name of `fleet.gateways`".to_string();
        let at = values.at(&keys::LIVENESS);
        report.add(Finding::new(&code::FLEET, at, message).help(help));
    }
    addresses.iter().filter_map(|address| address.parse().ok()).collect()
}

/// Reads the keys that sign messages from their file. The finding never contains anything from the
/// file.
fn keys(values: &Values, report: &mut Report) -> Option<FleetKeys> {
    let (value, at) = values.given(&keys::FLEET_KEY_FILE)?;
    let secrets = bywash_files::secret(value.text().as_ref())
        .map_err(|why| why.to_string())
        .and_then(|text| Secrets::parse(&text).map_err(|fault| fault.to_string()));
    match secrets {
        Ok(secrets) => Some(FleetKeys::new(&secrets)),
        Err(why) => {
            let message = format!("cannot use `fleet.key_file`: {}", shown(&why));
            let help = "make the file with `bywash token-keys`, and let only the gateway's user \
                        read it";
            report.add(Finding::new(&code::FLEET_KEYS, at, message).help(help.to_string()));
            None
        }
    }
}

fn credentials(values: &Values, report: &mut Report) -> Option<Credentials> {
    let user = values.given(&keys::NATS_USER);
    let password = values.given(&keys::NATS_PASSWORD_FILE);
    let nkey = values.given(&keys::NKEY_FILE);
    if let (Some((_, at)), true) = (&nkey, user.is_some() || password.is_some()) {
        let message = "`fleet.nkey_file` and a user with a password exclude each other";
        let help = "remove one of them".to_string();
        report.add(Finding::new(&code::FLEET, at.clone(), message.to_string()).help(help));
        return None;
    }
    match (user, password) {
        (Some(_), Some((file, _))) => {
            let user = text(values, &keys::NATS_USER, "the name of a user", is_user, report)?;
            Some(Credentials::Password { user, file: PathBuf::from(file.text()) })
        }
        (Some((_, at)), None) => {
            text(values, &keys::NATS_USER, "the name of a user", is_user, report)?;
            if !values.refused(&keys::NATS_PASSWORD_FILE) {
                missing(&keys::NATS_PASSWORD_FILE, at, "the user needs a password", report);
            }
            None
        }
        (None, Some((_, at))) => {
            if !values.refused(&keys::NATS_USER) {
                missing(&keys::NATS_USER, at, "the password needs a user", report);
            }
            None
        }
        (None, None) => path(values, &keys::NKEY_FILE).map(Credentials::Nkey),
    }
}

fn path(values: &Values, key: &Key) -> Option<PathBuf> {
    values.given(key).map(|(value, _)| PathBuf::from(value.text()))
}

/// Reports a missing key at the position of the key that needs it.
fn missing(key: &Key, at: Range<usize>, why: &str, report: &mut Report) {
    let message = format!("`fleet.{}` is missing: {why}", key.name);
    let help = format!("write {} under [fleet]", key.line());
    report.add(Finding::new(&code::MISSING, at, message).help(help));
}
