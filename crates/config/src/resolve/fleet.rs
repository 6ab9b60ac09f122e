//! Resolves `[fleet]`.

use std::net::SocketAddr;
use std::path::PathBuf;

use bywash_engine::catalog::LimitSettings;
use bywash_token::{FleetKeys, Secrets};
use toml::Spanned;

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
    let Some((name, at)) = values.given(&keys::FLEET_NAME) else {
        if OTHERS.iter().any(|key| values.given(key).is_some())
            && !values.refused(&keys::FLEET_NAME)
        {
            missing(&values, &keys::FLEET_NAME, "the gateway would belong to no fleet", report);
        }
        return None;
    };
    let name = name.text().to_string();
    let gateways = gateways(&values, report);
    if let Some(gateways) = &gateways
        && !gateways.contains(&name)
    {
        let message = format!("`fleet.name` \"{}\" is not in `fleet.gateways`", shown(&name));
        let help = spelling::did_you_mean(&name, gateways.iter().map(String::as_str))
            .unwrap_or_else(|| "add it to the list of every gateway".to_string());
        report.add(Finding::new(&code::FLEET, at, message).help(help));
    }
    if limit.name() != "fixed" {
        let message = "a fleet needs a fixed limit: `concurrency.policy` is not \"fixed\"";
        let help = "write the limit of all gateways together as `upstream.limit`".to_string();
        report.add(Finding::new(&code::FLEET, values.table(), message.into()).help(help));
    }
    let servers = values.given(&keys::NATS_SERVERS).map(|(value, _)| texts(value.texts()));
    if servers.is_none() && !values.refused(&keys::NATS_SERVERS) {
        missing(&values, &keys::NATS_SERVERS, "there is no way to the other gateways", report);
    }
    let keys = keys(&values, report);
    let gateways = gateways?;
    Some(Fleet {
        name,
        liveness: liveness(&values, gateways.len(), report),
        gateways,
        servers: servers?,
        subject: values.of(&keys::SUBJECT).text().to_string(),
        keys: keys?,
        credentials: credentials(&values, report),
        ca_file: path(&values, &keys::NATS_CA_FILE),
    })
}

fn gateways(values: &Values, report: &mut Report) -> Option<Vec<String>> {
    let Some((value, _)) = values.given(&keys::GATEWAYS) else {
        if !values.refused(&keys::GATEWAYS) {
            missing(values, &keys::GATEWAYS, "the number of gateways is unknown", report);
        }
        return None;
    };
    let mut names: Vec<String> = Vec::new();
    for name in value.texts() {
        if names.contains(name.get_ref()) {
            let message = format!("\"{}\" is listed twice", shown(name.get_ref()));
            let help = "each gateway needs a name of its own".to_string();
            report.add(Finding::new(&code::FLEET, name.span(), message).help(help));
        } else {
            names.push(name.get_ref().clone());
        }
    }
    Some(names)
}

fn liveness(values: &Values, gateways: usize, report: &mut Report) -> Vec<SocketAddr> {
    let Some((value, at)) = values.given(&keys::LIVENESS) else { return Vec::new() };
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for text in value.texts() {
        match text.get_ref().parse() {
            Ok(address) if !addresses.contains(&address) => addresses.push(address),
            Ok(_) => {
                let message = format!("{} is listed twice", shown(text.get_ref()));
                let help = "each gateway needs an address of its own".to_string();
                report.add(Finding::new(&code::FLEET, text.span(), message).help(help));
            }
            Err(_) => {
                let message =
                    format!("\"{}\" is not an IP address with a port", shown(text.get_ref()));
                let help = "write it like \"10.0.0.21:7073\"".to_string();
                report.add(Finding::new(&code::FLEET, text.span(), message).help(help));
            }
        }
    }
    if value.texts().len() != gateways {
        let message = format!(
            "`fleet.liveness` has {} addresses, and there are {gateways} gateways",
            value.texts().len()
        );
        let help = "write one address for each name of `fleet.gateways`".to_string();
        report.add(Finding::new(&code::FLEET, at, message).help(help));
    }
    addresses
}

/// Reads the keys that sign messages from their file. The finding never contains anything from the
/// file.
fn keys(values: &Values, report: &mut Report) -> Option<FleetKeys> {
    let Some((value, at)) = values.given(&keys::FLEET_KEY_FILE) else {
        if !values.refused(&keys::FLEET_KEY_FILE) {
            let why = "any program that reaches the NATS servers could take slots";
            missing(values, &keys::FLEET_KEY_FILE, why, report);
        }
        return None;
    };
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
    let password = path(values, &keys::NATS_PASSWORD_FILE);
    let nkey = path(values, &keys::NKEY_FILE);
    match (user, password, nkey) {
        (None, None, None) => None,
        (None, None, Some(file)) => Some(Credentials::Nkey(file)),
        (Some((user, _)), Some(file), None) => {
            Some(Credentials::Password { user: user.text().to_string(), file })
        }
        (_, _, Some(_)) => {
            let message = "`fleet.nkey_file` and `fleet.user` exclude each other";
            let help = "remove one of them".to_string();
            let at = values.at(&keys::NKEY_FILE);
            report.add(Finding::new(&code::FLEET, at, message.to_string()).help(help));
            None
        }
        (user, _, None) => {
            let absent = if user.is_some() { &keys::NATS_PASSWORD_FILE } else { &keys::NATS_USER };
            missing(values, absent, "a user needs a name and a password", report);
            None
        }
    }
}

fn path(values: &Values, key: &Key) -> Option<PathBuf> {
    values.given(key).map(|(value, _)| PathBuf::from(value.text()))
}

fn texts(values: &[Spanned<String>]) -> Vec<String> {
    values.iter().map(|value| value.get_ref().clone()).collect()
}

fn missing(values: &Values, key: &Key, why: &str, report: &mut Report) {
    let message = format!("`fleet.{}` is missing: {why}", key.name);
    let help = format!("write {} under [fleet]", key.line());
    report.add(Finding::new(&code::MISSING, values.table(), message).help(help));
}
