//! Tests of TLS to real databases. Without `BYWASH_DATABASE_CA`, they print `NOT TESTED`.

use std::path::{Path, PathBuf};

use bywash_config::{DatabaseAddress, DatabaseTls};

use crate::authority::Authority;
use crate::client::Client;
use crate::databases::{Connection, End, long};
use crate::site::{Product, Site, peace};

/// Returns a site whose daemon connects with TLS as the database user `secure`, which may not
/// connect without TLS. `ca` is the authority that it trusts.
fn site(kind: Product, ca: &Path) -> Site {
    Site::of(kind, |settings| {
        settings.server.user = "secure".into();
        settings.tls = Some(DatabaseTls { ca: ca.to_owned(), certificate: None });
    })
    .unwrap()
}

/// Runs a test with each database that is available, and with the authority of its certificate.
fn with_each(test: impl Fn(Product, PathBuf)) {
    let Some(ca) = std::env::var_os("BYWASH_DATABASE_CA") else {
        return println!("NOT TESTED: TLS to databases: BYWASH_DATABASE_CA is not set");
    };
    let _peace = peace();
    for kind in Product::ALL.into_iter().filter(|kind| kind.address().is_some()) {
        test(kind, ca.clone().into());
    }
}

/// Waits until the daemon reports a problem with its database, and returns its status.
fn complaint(site: &Site) -> String {
    site.until("it complains", |site| site.get("/v1/status").contains(r#""shop":"#));
    site.get("/v1/status")
}

#[test]
fn a_query_is_cancelled_over_tls() {
    with_each(|kind, ca| {
        let site = site(kind, &ca);
        let mut app = Client::of(&site);
        let (works, watch) = (Connection::new(kind), Connection::new(kind));
        assert_eq!(app.ask(&format!("1 LEASE r1 shop {}", works.number)), "1 OK");
        works.begin_seen(long(kind), &watch);
        assert_eq!(app.ask("2 STOP r1 client_left"), "2 OK cancelled=1 spared=0");
        assert_eq!(works.end(), End::Cancelled);
    });
}

#[test]
fn a_database_with_a_certificate_of_another_authority_gets_no_password() {
    with_each(|kind, _| {
        let stranger = Authority::new();
        let status = complaint(&site(kind, &stranger.file()));
        assert!(status.contains("UnknownIssuer"), "{kind:?}: {status}");
    });
}

#[test]
fn a_database_whose_certificate_has_another_name_gets_no_password() {
    with_each(|kind, ca| {
        let site = Site::of(kind, |settings| {
            settings.server.user = "secure".into();
            settings.tls = Some(DatabaseTls { ca: ca.clone(), certificate: None });
            let DatabaseAddress::Tcp { host, .. } = &mut settings.server.address else {
                unreachable!("the databases of tests listen on TCP")
            };
            // The certificate is for 127.0.0.1.
            *host = "localhost".into();
        });
        let status = complaint(&site.unwrap());
        assert!(status.contains("not valid for name"), "{kind:?}: {status}");
    });
}

#[test]
fn without_tls_the_database_itself_refuses_such_a_user() {
    with_each(|kind, _| {
        let site = Site::of(kind, |settings| settings.server.user = "secure".into()).unwrap();
        let status = complaint(&site);
        let why = match kind {
            Product::Postgres => "db error",
            Product::MariaDb => "Access denied",
        };
        assert!(status.contains(why), "{kind:?}: {status}");
    });
}

#[test]
fn a_missing_file_prevents_the_start_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = crate::site::settings(folder.path(), "stopd");
    let nowhere = crate::site::ANY;
    let mut database = Product::Postgres.settings(&folder, nowhere, "stopd");
    database.tls = Some(DatabaseTls { ca: "/nowhere/ca.pem".into(), certificate: None });
    config.databases = vec![database];
    let error = bywash_stopd::start(config, std::io::sink()).err().unwrap().to_string();
    assert!(error.starts_with("TLS of [database.shop]: cannot read /nowhere/ca.pem"), "{error}");
}
