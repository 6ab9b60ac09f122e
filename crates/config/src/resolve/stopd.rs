//! Resolves `[stopd]` and `[database.NAME]`. Names of the machine's users are looked up in
//! `/etc/passwd`. A user from another source must be given as a number.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;

use toml::Spanned;

use super::server;
use crate::code;
use crate::document::{Document, Entry};
use crate::key::Key;
use crate::keys;
use crate::mode::Mode;
use crate::read::{self, Values};
use crate::report::{Finding, Report};
use crate::socket;
use crate::source::shown;
use crate::stopd::{
    Database, DatabaseAddress, DatabaseKind, DatabaseServer, DatabaseTls, Stopd, StopdNetwork,
    StopdTls,
};
use crate::value::Value;

pub(crate) fn stopd(document: &Document<'_>, mode: Mode, report: &mut Report) -> Stopd {
    let values = document.section(&keys::STOPD, report);
    let admin = values.of(&keys::STOPD_ADMIN).address();
    if !admin.ip().is_loopback() {
        let message = format!("`stopd.admin` {admin} can be reached from other machines");
        let help = "this address has no authentication: write 127.0.0.1:7071".to_string();
        let at = values.at(&keys::STOPD_ADMIN);
        report.add(Finding::new(&code::ADMIN, at, message).help(help));
    }
    let databases = databases(document, report);
    Stopd {
        network: network(&values, &databases, report),
        socket: socket(&values, report),
        mode: values.get(&keys::STOPD_MODE).map_or(mode, Value::word),
        leases: users(&values, &keys::LEASES, report),
        stops: users(&values, &keys::STOPS, report),
        admin,
        databases,
    }
}

/// Resolves the keys for other machines. A key without effect is an error, because the operator
/// expects a connection that does not exist.
fn network(values: &Values, databases: &[Database], report: &mut Report) -> StopdNetwork {
    let leases = certificate_names(values, &keys::REMOTE_LEASES, report);
    let stops = certificate_names(values, &keys::REMOTE_STOPS, report);
    let mut wrong = |key: &Key, message: String, help: &str| {
        let finding = Finding::new(&code::STOPD_NETWORK, values.at(key), message);
        report.add(finding.help(help.to_string()));
    };
    let listen = values.get(&keys::STOPD_LISTEN).map(Value::address);
    let upstream = values.given(&keys::STOPD_UPSTREAM);
    if upstream.is_some() {
        if values.given(&keys::STOPD_MODE).is_some() {
            let message = "`stopd.mode` has no effect with `stopd.upstream`".to_string();
            wrong(
                &keys::STOPD_MODE,
                message,
                "set the mode of the other daemon, and remove the key",
            );
        }
        if listen.is_some() {
            let message = "`stopd.upstream` and `stopd.listen` exclude each other".to_string();
            wrong(&keys::STOPD_UPSTREAM, message, "a relay serves this machine only: remove one");
        }
        if let Some(database) = databases.first() {
            let message = format!(
                "`stopd.upstream` excludes `[database.{}]`: a relay has no database",
                database.name
            );
            let help = "write the databases into the file of the other daemon";
            wrong(&keys::STOPD_UPSTREAM, message, help);
        }
    }
    if listen.is_none() && !values.refused(&keys::STOPD_LISTEN) {
        for (key, names) in [(keys::REMOTE_LEASES, &leases), (keys::REMOTE_STOPS, &stops)] {
            if !names.is_empty() {
                let message = format!("`stopd.{}` has no effect without `stopd.listen`", key.name);
                wrong(&key, message, "write `listen` as well, or remove the key");
            }
        }
    }
    let tls = network_tls(values, listen.is_some() || upstream.is_some(), &mut wrong);
    match (listen, upstream, tls) {
        (Some(address), None, Some(tls)) => StopdNetwork::Accepts { address, leases, stops, tls },
        (None, Some((value, at)), Some(tls)) => match host_and_port(value.text(), None) {
            Ok((host, port)) => StopdNetwork::Relays { host, port, tls },
            Err(why) => {
                let message = format!("`stopd.upstream` \"{}\": {why}", shown(value.text()));
                let help = format!("write {}", keys::STOPD_UPSTREAM.line());
                report.add(Finding::new(&code::STOPD_UPSTREAM, at, message).help(help));
                StopdNetwork::Local
            }
        },
        _ => StopdNetwork::Local,
    }
}

/// Returns the files of TLS between daemons. Calls `wrong` for a file that is missing, or for one
/// that is `needed` by no connection.
fn network_tls(
    values: &Values,
    needed: bool,
    wrong: &mut impl FnMut(&Key, String, &str),
) -> Option<StopdTls> {
    let files = [keys::STOPD_CA, keys::STOPD_CERTIFICATE, keys::STOPD_KEY];
    let present = files.each_ref().map(|key| values.get(key).map(|value| value.text().into()));
    for (key, file) in files.iter().zip(&present) {
        if needed && file.is_none() && !values.refused(key) {
            let user = [keys::STOPD_LISTEN, keys::STOPD_UPSTREAM]
                .into_iter()
                .find(|user| values.given(user).is_some())?;
            let message = format!("`stopd.{}` needs `stopd.{}`", user.name, key.name);
            wrong(&user, message, &format!("write {}", key.line()));
        } else if !needed && file.is_some() && !values.refused(&keys::STOPD_LISTEN) {
            let message = format!("`stopd.{}` has no effect", key.name);
            wrong(key, message, "write `listen` or `upstream` as well, or remove the key");
        }
    }
    let [ca, certificate, key] = present;
    Some(StopdTls { ca: ca?, certificate: certificate?, key: key? }).filter(|_| needed)
}

fn certificate_names(values: &Values, key: &Key, report: &mut Report) -> Vec<String> {
    let mut names = Vec::new();
    for name in values.of(key).texts() {
        let text = name.get_ref();
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let is_uri = text.contains("://") && text.chars().all(|c| c.is_ascii_graphic());
        let is_name = text.chars().all(plain) && text.parse::<IpAddr>().is_err();
        if text.is_empty() || text.len() > 253 || !(is_name || is_uri) {
            let message =
                format!("`stopd.{}`: \"{}\" is not a name in a certificate", key.name, shown(text));
            let help = "write a DNS name such as app1.internal, or a URI".to_string();
            report.add(Finding::new(&code::CERTIFICATE_NAME, name.span(), message).help(help));
        } else {
            names.push(if is_uri { text.clone() } else { text.to_ascii_lowercase() });
        }
    }
    names
}

fn socket(values: &Values, report: &mut Report) -> Option<PathBuf> {
    let (value, at) = values.given(&keys::SOCKET)?;
    let path = socket::path(value.text());
    if let Err(why) = path {
        let message = format!("`stopd.socket` \"{}\": {why}", shown(value.text()));
        let help = format!("write {}", keys::SOCKET.line());
        report.add(Finding::new(&code::STOPD_SOCKET, at, message).help(help));
    }
    path.ok()
}

fn users(values: &Values, key: &Key, report: &mut Report) -> Vec<u32> {
    let listed = values.of(key).texts();
    // `/etc/passwd` is read only if there are names to look up.
    let passwd = if listed.is_empty() { String::new() } else { passwd() };
    listed.iter().filter_map(|user| number(&passwd, key, user, report)).collect()
}

fn passwd() -> String {
    fs::read("/etc/passwd")
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

fn number(passwd: &str, key: &Key, user: &Spanned<String>, report: &mut Report) -> Option<u32> {
    let name = user.get_ref();
    let found = name.parse().ok().or_else(|| number_of(passwd, name));
    if found.is_none() {
        let message =
            format!("`stopd.{}`: \"{}\" is not a user in /etc/passwd", key.name, shown(name));
        let help =
            "write a user from another source as a number, which `id -u NAME` prints".to_string();
        report.add(Finding::new(&code::USER, user.span(), message).help(help));
    }
    found
}

/// Returns the number of a user from the text of passwd(5), whose lines are
/// `name:password:number:…`. Returns `None` if the user is not in the text.
fn number_of(passwd: &str, name: &str) -> Option<u32> {
    let mut lines = passwd.lines().map(|line| line.split(':'));
    let mut line = lines.find(|line| line.clone().next() == Some(name))?;
    line.nth(2)?.parse().ok()
}

fn databases(document: &Document<'_>, report: &mut Report) -> Vec<Database> {
    let mut entries = document.entries(&keys::DATABASE, report);
    if let Some(first) = entries.get(keys::DATABASES) {
        let message = format!(
            "there are {} databases, and at most {} are allowed",
            entries.len(),
            keys::DATABASES
        );
        report.add(Finding::new(&code::DATABASES, first.at.clone(), message));
    }
    entries.truncate(keys::DATABASES);
    entries.iter().filter_map(|entry| database(entry, report)).collect()
}

fn database(entry: &Entry<'_, '_>, report: &mut Report) -> Option<Database> {
    check_name(entry, report);
    let table = entry.table();
    read::complain_of_strangers(&table, keys::DATABASE.keys, report);
    let values = read::values(&table, keys::DATABASE.keys, report);
    let server = server_of(entry.name, &values, report);
    let tls = database_tls(entry.name, server.as_ref(), &values, report);
    Some(Database {
        tls,
        name: entry.name.to_string(),
        password_file: values.get(&keys::PASSWORD_FILE).map(|value| value.text().into()),
        user: user(entry.name, &values, report),
        writes: values.of(&keys::WRITES).truth(),
        query_tags: values.of(&keys::QUERY_TAGS).truth(),
        statements_per_second: values.of(&keys::STATEMENTS).whole() as u32,
        server: server?,
    })
}

fn check_name(entry: &Entry<'_, '_>, report: &mut Report) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name = entry.name;
    let help = match name {
        "self" => "`self` means the holder of the lease: choose another name",
        _ if (1..=32).contains(&name.len()) && name.chars().all(plain) => return,
        _ => "use letters, digits, _ and -, at most 32 characters",
    };
    let message = format!("`{}` is not a valid name of a database", shown(name));
    report
        .add(Finding::new(&code::DATABASE_NAME, entry.at.clone(), message).help(help.to_string()));
}

fn server_of(name: &str, values: &Values, report: &mut Report) -> Option<DatabaseServer> {
    let (value, at) = values.given(&keys::DATABASE_SERVER)?;
    let parsed = parse(value.text());
    if let Err(why) = parsed {
        // The value may contain a password, so the message does not show it.
        let message = format!("`database.{}.server`: {why}", shown(name));
        let help = format!("write {}", keys::DATABASE_SERVER.line());
        report.add(Finding::new(&code::DATABASE, at, message).help(help));
    }
    parsed.ok()
}

/// Resolves the TLS keys of a database. TLS on a Unix socket would have no name to verify.
fn database_tls(
    name: &str,
    server: Option<&DatabaseServer>,
    values: &Values,
    report: &mut Report,
) -> Option<DatabaseTls> {
    let mut wrong = |key: &Key, why: &str, help: String| {
        let message = format!("`database.{}.{}` {why}", shown(name), key.name);
        let finding = Finding::new(&code::DATABASE_TLS, values.at(key), message);
        report.add(finding.help(help));
    };
    let file = |key: &Key| values.get(key).map(|value| PathBuf::from(value.text()));
    let ca = file(&keys::DATABASE_CA);
    let pair = [keys::DATABASE_CERTIFICATE, keys::DATABASE_KEY];
    let files = pair.each_ref().map(file);
    for (key, other) in [(0, 1), (1, 0)] {
        if files[key].is_some() && files[other].is_none() && !values.refused(&pair[other]) {
            let why = format!("needs `database.{}.{}`", shown(name), pair[other].name);
            wrong(&pair[key], &why, format!("write {} as well", pair[other].line()));
        }
    }
    let first = [keys::DATABASE_CA, keys::DATABASE_CERTIFICATE, keys::DATABASE_KEY]
        .into_iter()
        .find(|key| values.given(key).is_some())?;
    if server.is_some_and(|server| matches!(server.address, DatabaseAddress::Unix(_))) {
        let help = "replace unix:/PATH with the host, or remove the keys of TLS".to_string();
        wrong(&first, "has no effect on a Unix socket", help);
    } else if ca.is_none() && !values.refused(&keys::DATABASE_CA) {
        let help = format!("write {} as well", keys::DATABASE_CA.line());
        wrong(&first, "has no effect without `tls_ca`", help);
    }
    let [certificate, key] = files;
    Some(DatabaseTls { ca: ca?, certificate: certificate.zip(key) })
}

fn parse(text: &str) -> Result<DatabaseServer, &'static str> {
    let (kind, port, rest) = if let Some(rest) = text.strip_prefix("postgres://") {
        (DatabaseKind::Postgres, 5432, rest)
    } else if let Some(rest) = text.strip_prefix("mysql://") {
        (DatabaseKind::MySql, 3306, rest)
    } else {
        return Err("it starts with neither postgres:// nor mysql:// (which is also for MariaDB)");
    };
    let (user, rest) = rest.split_once('@').ok_or("there is no user before an `@`")?;
    if user.contains(':') {
        return Err("a password is not allowed here: name its file in password_file");
    }
    let (address, database) = rest.rsplit_once('/').ok_or("there is no /DATABASE at the end")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_$-".contains(c);
    if user.is_empty() || !(1..=64).contains(&database.len()) || !database.chars().all(plain) {
        return Err("it needs a user, and after the last slash a database: letters, digits, _ $ -");
    }
    let address = if let Some(path) = address.strip_prefix(socket::PREFIX) {
        DatabaseAddress::Unix(socket::path(path)?)
    } else {
        let (host, port) = host_and_port(address, Some(port))?;
        DatabaseAddress::Tcp { host, port }
    };
    Ok(DatabaseServer { kind, user: user.to_owned(), address, database: database.to_owned() })
}

/// Splits a text into host and port; the port is `usual` if the text has none. An IPv6 address
/// loses its brackets. The error says what is wrong.
fn host_and_port(text: &str, usual: Option<u16>) -> Result<(String, u16), &'static str> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let port = port.parse().ok().filter(|port| *port != 0);
            (host, port.ok_or("the port is not a number from 1 to 65535")?)
        }
        _ => (text, usual.ok_or("there is no :PORT at the end")?),
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if server::is_name(bare) {
        Ok((bare.to_owned(), port))
    } else {
        Err("the host is neither a name nor an address")
    }
}

fn user(name: &str, values: &Values, report: &mut Report) -> Option<String> {
    let (value, at) = values.given(&keys::DATABASE_USER)?;
    let user = value.text();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.$-".contains(c);
    if (1..=63).contains(&user.len()) && user.chars().all(plain) {
        return Some(user.to_owned());
    }
    let message = format!(
        "`database.{}.user` \"{}\" is not a valid name of a database user",
        shown(name),
        shown(user)
    );
    let help = "use letters, digits, and any of _ . $ -, at most 63 characters".to_string();
    report.add(Finding::new(&code::DATABASE_USER, at, message).help(help));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_what_it_speaks_who_asks_and_where_it_is() {
        for (text, address) in [
            ("postgres://stopd@127.0.0.1/shop", "postgres://stopd@127.0.0.1:5432/shop"),
            ("mysql://stopd@db.internal:3307/shop", "mysql://stopd@db.internal:3307/shop"),
            ("mysql://stopd@[::1]/shop", "mysql://stopd@::1:3306/shop"),
            ("mysql://stopd@[::1]:33/shop", "mysql://stopd@::1:33/shop"),
            ("postgres://s@unix:/run/postgresql/shop", "postgres://s@unix:/run/postgresql/shop"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), address);
        }
    }

    #[test]
    fn a_text_that_is_no_server_is_told_why() {
        for (text, why) in [
            ("", "neither"),
            ("sqlite:shop.db", "neither"),
            ("postgres://127.0.0.1/shop", "no user"),
            ("postgres://@127.0.0.1/shop", "it needs a user"),
            ("postgres://stopd:secret@127.0.0.1/shop", "password_file"),
            ("postgres://stopd@127.0.0.1", "no /DATABASE"),
            ("postgres://stopd@127.0.0.1/", "it needs a user"),
            ("postgres://stopd@127.0.0.1/shop?a=b", "it needs a user"),
            ("mysql://stopd@127.0.0.1/a' OR 1=1", "it needs a user"),
            ("postgres://stopd@127.0.0.1:0/shop", "port"),
            ("postgres://stopd@a b/shop", "host"),
            ("mysql://stopd@unix:run/shop", "absolute"),
        ] {
            let no = parse(text).expect_err(text);
            assert!(no.contains(why), "{text}: {no}");
        }
    }

    #[test]
    fn a_user_is_found_by_name() {
        let passwd =
            "root:x:0:0::/root:/bin/sh\nwww-data:x:33:33::/var/www:/usr/sbin/nologin\nbroken\n";
        assert_eq!(number_of(passwd, "www-data"), Some(33));
        assert_eq!(number_of(passwd, "root"), Some(0));
        assert_eq!(number_of(passwd, "www"), None);
        assert_eq!(number_of(passwd, "broken"), None);
    }
}
