//! Tests with a gateway in front, which signs the level that the ad server then trusts.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bywash_adserver::{Fill, Level, Options};
use bywash_config::Config;
use bywash_gateway::{Gateway, Inheritance};
use bywash_token::{Secret, Secrets};
use bywash_units::TimeSpan;

use crate::client::Client;
use crate::site::{Site, wait_for};

/// A gateway that runs until it is dropped.
struct Running(Option<Gateway>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(gateway) = self.0.take() {
            gateway.stop(TimeSpan::ZERO);
        }
    }
}

fn write_keys(path: &Path, secret: u8) {
    std::fs::write(path, Secrets::fresh(Secret::from_bytes([secret; 32])).to_text()).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Starts a gateway in front of the site, with the given keys. The returned client acts as a proxy
/// in front of the gateway that knows the level of the customer.
fn in_front(site: &Site, keys: &Path) -> (Running, Client) {
    let text = format!(
        r#"
        version = 1
        mode = "enforce"
        listen.http = "127.0.0.1:0"
        listen.admin = "127.0.0.1:0"
        listen.trusted_proxies = ["127.0.0.0/8"]
        upstream.server = "http://{}"
        log.access = "off"
        levels.names = ["high", "low"]
        levels.key_file = "{}"
        levels.customer_header = "X-Customer-Level"
        "#,
        site.server.as_ref().unwrap().address(),
        keys.display(),
    );
    let (config, _) = Config::parse(&text, "test").unwrap();
    let gateway = bywash_gateway::start(config, Inheritance::default()).unwrap();
    let client = Client::new(gateway.http());
    (Running(Some(gateway)), client)
}

#[test]
fn what_the_gateway_says_of_a_customer_decides_the_level_of_a_page() {
    const PAGE: &str = "/ad?slots=1&concepts=concept-1";
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("level.keys");
    write_keys(&keys, 7);
    let fill = Some(Fill { contracts: 50, concepts: 5, seed: 1 });
    let level_keys = Some(keys.clone());
    let site = Site::with(|options| Options { fill, level_keys, ..options });
    let served = |client: &Client, fields: &str| {
        let before = site.wait_until_settled();
        assert_eq!(client.send("GET", PAGE, fields, "").reply().status, 200, "{fields}");
        let after = site.wait_until_settled();
        let more = |level| after.level(level).answered - before.level(level).answered;
        (more(Level::High), more(Level::Low))
    };
    let (_gateway, client) = in_front(&site, &keys);
    assert_eq!(served(&client, "X-Customer-Level: high\r\n"), (1, 0));
    assert_eq!(served(&client, ""), (0, 1));
    assert_eq!(served(&client, "Bywash-Level: high\r\n"), (0, 1), "a client's own word");
    assert_eq!(served(&client, "X-Customer-Level: high\r\nBywash-Level: low\r\n"), (1, 0));
    assert_eq!(site.wait_until_settled().levels_refused, 0);
    // Replace the key file while the server runs.
    write_keys(&keys, 8);
    let (_another, client) = in_front(&site, &keys);
    let is_high = || (served(&client, "X-Customer-Level: high\r\n") == (1, 0)).then_some(());
    wait_for(is_high, || "the new key is found".into());
}
