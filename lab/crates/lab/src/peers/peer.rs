//! The program and the configuration of each peer in `lab peers`.
//!
//! Each configuration is a template file in `lab/peers`, so that readers who know the program can
//! judge it. The values that are inserted into the templates are the same for all peers.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bywash_peer::PeerKind;
use bywash_scenario::Scenario;
use bywash_sim::peers::haproxy_expert;

use crate::args::Peer;
use crate::classes;

/// The addresses and limits that are inserted into a peer's configuration. They are the same for
/// all peers.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerSettings<'a> {
    pub(super) port: u16,
    pub(super) admin: u16,
    /// The port of the shop on 127.0.0.1.
    pub(super) upstream: u16,
    /// The maximum number of concurrent requests at the shop.
    pub(super) limit: u32,
    /// The maximum number of concurrent client connections.
    pub(super) connections: u64,
    /// The path of the folder that the peer may write to.
    pub(super) folder: &'a Path,
}

impl Peer {
    /// Returns the program of the peer.
    pub(super) const fn kind(self) -> PeerKind {
        match self {
            Self::Bywash | Self::BywashLearned | Self::BywashPlain => PeerKind::Bywash,
            Self::Haproxy | Self::HaproxyExpert | Self::HaproxyTold => PeerKind::Haproxy,
            Self::Nginx => PeerKind::Nginx,
            Self::Envoy => PeerKind::Envoy,
        }
    }

    const fn template(self) -> &'static str {
        match self {
            Self::Bywash | Self::BywashPlain => {
                include_str!("../../../../peers/bywash.toml")
            }
            Self::BywashLearned => concat!(
                include_str!("../../../../peers/bywash.toml"),
                include_str!("../../../../peers/bywash-learned.toml"),
            ),
            Self::Haproxy => include_str!("../../../../peers/haproxy.cfg"),
            Self::HaproxyExpert | Self::HaproxyTold => {
                include_str!("../../../../peers/haproxy-expert.cfg")
            }
            Self::Nginx => include_str!("../../../../peers/nginx.conf"),
            Self::Envoy => include_str!("../../../../peers/envoy.yaml"),
        }
    }

    /// Returns the file name of the peer's configuration. The extension matters, because Envoy
    /// recognises the format by it.
    const fn file(self) -> &'static str {
        match self {
            Self::Bywash | Self::BywashLearned | Self::BywashPlain => "bywash.toml",
            Self::Haproxy | Self::HaproxyExpert | Self::HaproxyTold => "haproxy.cfg",
            Self::Nginx => "nginx.conf",
            Self::Envoy => "envoy.yaml",
        }
    }

    /// Returns the arguments with which the peer's program is started with the configuration
    /// `file`.
    pub(super) fn arguments(self, file: &Path) -> Vec<String> {
        let mut arguments = self.kind().arguments(file);
        if self == Self::BywashPlain {
            arguments.push("--bypass".into());
        }
        arguments
    }

    /// Writes the peer's configuration into `settings.folder` and returns its path.
    pub(super) fn configure(
        self,
        scenario: &Scenario,
        settings: PeerSettings<'_>,
    ) -> Result<PathBuf, String> {
        let file = settings.folder.join(self.file());
        std::fs::write(&file, self.config(scenario, settings)?)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        Ok(file)
    }

    fn config(self, scenario: &Scenario, settings: PeerSettings<'_>) -> Result<String, String> {
        let checkout = classes::checkout(scenario)?;
        let conditions = if self == Self::HaproxyTold {
            classes::haproxy_conditions(scenario)?
        } else {
            Vec::new()
        };
        let times = |bound: u32| (u64::from(settings.limit) * u64::from(bound)).to_string();
        let values = [
            ("PORT", settings.port.to_string()),
            ("ADMIN", settings.admin.to_string()),
            ("UPSTREAM", settings.upstream.to_string()),
            ("LIMIT", settings.limit.to_string()),
            ("LIMIT_BROWSING", browsing(settings.limit).to_string()),
            ("CONNECTIONS", settings.connections.to_string()),
            ("FILES", (settings.connections * 2).to_string()),
            ("FOLDER", settings.folder.display().to_string()),
            ("DEEP", times(haproxy_expert::DEEP)),
            ("MOST_NEW", times(haproxy_expert::MOST_NEW)),
            ("MOST_TOLD", times(haproxy_expert::MOST_TOLD)),
            ("MOST_BROWSING", times(haproxy_expert::MOST_BROWSING)),
            ("MOST_ALL", times(haproxy_expert::MOST_ALL)),
            // The maximum number of requests of one address, waiting and running. It is so high
            // that no client of the lab is refused because of its address.
            ("MOST_SOURCE", times(haproxy_expert::MOST_TOLD + 1)),
            ("RETRY_AFTER", (haproxy_expert::RETRY_AFTER.as_millis() / 1000).to_string()),
            ("TOLD", told_acl(&conditions)),
            ("BYWASH_CLASSES", classes::toml(scenario)),
            ("BYWASH_SIGNALS", format!("{:?}", classes::signals(scenario))),
            ("STATE", state(settings.folder).display().to_string()),
            ("TRANSACTION_PATHS", checkout.join(" ")),
            ("TRANSACTION_RANKS", ranks(&checkout)),
            ("NGINX_TRANSACTIONS", unlimited(&checkout)),
        ];
        let fill = |text: String, (name, value): &(&str, String)| {
            text.replace(&format!("@{name}@"), value)
        };
        Ok(values.iter().fold(self.template().to_owned(), fill))
    }
}

/// Returns the path at which a peer keeps its learned state in `folder`.
pub(super) fn state(folder: &Path) -> PathBuf {
    folder.join("state")
}

/// Returns the number of slots that browsing may take: all but a quarter of `limit`, which is
/// reserved for the checkout. The result is at least one.
fn browsing(limit: u32) -> u32 {
    limit.saturating_sub((limit / 4).max(1)).max(1)
}

/// Returns the lines that give each step of the checkout its priority class in `HAProxy`. The last
/// step, which is the first path in `checkout`, gets class 1 and goes first.
fn ranks(checkout: &[&str]) -> String {
    let mut text = String::new();
    for (rank, path) in (1..).zip(checkout) {
        // Writing to a string cannot fail, neither here nor below.
        let _ = writeln!(
            text,
            "    http-request set-priority-class int({rank}) if session {{ path {path} }}"
        );
    }
    text
}

/// Returns the lines of the ACL by which `HAProxy` recognises a signal. If there are several lines,
/// any match is enough. Without any condition the ACL never matches.
fn told_acl(conditions: &[String]) -> String {
    if conditions.is_empty() {
        return "    acl told always_false".to_owned();
    }
    conditions
        .iter()
        .map(|condition| format!("    acl told {condition}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the entries of nginx's map that exempt the paths in `checkout` from the concurrency
/// limit.
fn unlimited(checkout: &[&str]) -> String {
    let mut text = String::new();
    for path in checkout {
        let _ = writeln!(text, "        \"{path}\" \"\";");
    }
    text
}

#[cfg(test)]
mod tests {
    use bywash_peer::Scratch;
    use bywash_sim::peers::haproxy_expert::{
        BUYER, DEEP, MOST_ALL, MOST_BROWSING, MOST_NEW, MOST_TOLD, NEW, SESSION, TOLD,
    };
    use bywash_sim::peers::haproxy_ordinary::{BROWSING, TRANSACTION};

    use super::*;

    fn scenario() -> Scenario {
        let text = include_str!("../../../../scenarios/peers.toml");
        Scenario::parse(text, Path::new(".")).unwrap()
    }

    fn settings(folder: &Path, limit: u32) -> PeerSettings<'_> {
        let [port, admin, upstream] = [(); 3].map(|()| bywash_peer::free_port().unwrap());
        PeerSettings { port, admin, upstream, limit, connections: 400, folder }
    }

    #[test]
    fn every_place_in_every_template_is_filled() {
        for peer in Peer::ALL {
            let text = peer.config(&scenario(), settings(Path::new("/scratch"), 4)).unwrap();
            let left = text.split('@').skip(1).find(|rest| {
                let name = rest.chars().take_while(char::is_ascii_uppercase).count();
                name > 0 && rest[name..].starts_with(['@', '_'])
            });
            assert_eq!(left, None, "{peer}");
            assert!(text.contains("127.0.0.1") && !text.contains("0.0.0.0"), "{peer}");
        }
    }

    #[test]
    fn the_expert_puts_the_last_step_of_the_checkout_first() {
        let text =
            Peer::HaproxyExpert.config(&scenario(), settings(Path::new("/scratch"), 4)).unwrap();
        let position = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(text.contains("int(1) if session { path /confirm }\n"), "{text}");
        // If several lines match a request, the last line decides.
        assert!(position("class int(1000)\n") < position("class int(500) if session\n"));
        assert!(position("class int(500)") < position("class int(4) if session { path /login }"));
    }

    /// The configuration for HAProxy has the same values as the simulated policy.
    #[test]
    fn the_expert_has_the_classes_and_bounds_of_the_simulated_one() {
        for limit in [1, 4] {
            let settings = settings(Path::new("/scratch"), limit);
            let text = Peer::HaproxyTold.config(&scenario(), settings).unwrap();
            let has = |line: String| assert!(text.contains(&line), "{line}: {text}");
            for (class, whose) in [
                (NEW, ""),
                (TOLD, " if told"),
                (SESSION, " if session"),
                (BUYER, " if session buyer"),
            ] {
                has(format!("http-request set-priority-class int({class}){whose}\n"));
            }
            for (whose, bound) in [
                ("mul(-2) if !transaction", DEEP),
                ("2 if !session !told", MOST_NEW),
                ("2 if !session", MOST_TOLD),
                ("2 if !transaction", MOST_BROWSING),
                ("2 if", MOST_ALL),
            ] {
                has(format!("{whose} {{ queue(app) ge {} }}\n", bound * limit));
            }
        }
        let text = Peer::Haproxy.config(&scenario(), settings(Path::new("/scratch"), 4)).unwrap();
        for (class, whose) in [(TRANSACTION, "transaction"), (BROWSING, "!transaction")] {
            assert!(text.contains(&format!("int({class}) if {whose}\n")), "{text}");
        }
        assert!(!text.contains("return status"), "it refuses nobody who comes: {text}");
    }

    #[test]
    fn only_who_is_told_knows_what_signals_mean() {
        let config = |peer: Peer, scenario: &Scenario| {
            peer.config(scenario, settings(Path::new("/scratch"), 4)).unwrap()
        };
        let mut scenario = scenario();
        let untold = config(Peer::HaproxyExpert, &scenario);
        assert!(untold.contains("acl told always_false\n") && !untold.contains("returning"));
        let told = config(Peer::HaproxyTold, &scenario);
        assert!(told.contains("acl told 'req.cook(returning)' -m str -- '1'\n"), "{told}");
        scenario.signals.clear();
        assert!(config(Peer::HaproxyTold, &scenario).contains("acl told always_false\n"));
    }

    #[test]
    fn nginx_leaves_the_checkout_a_slot_at_any_limit_but_one() {
        for (limit, left) in [(1, 1), (2, 1), (3, 2), (4, 3), (8, 6), (16, 12)] {
            assert_eq!(browsing(limit), left, "{limit}");
        }
    }

    /// Checks the configurations of the other programs with the programs themselves. The tests of
    /// the binary check bywash's own configuration.
    #[test]
    fn each_installed_program_likes_its_configuration_at_any_limit() {
        for peer in Peer::ALL.into_iter().filter(|peer| peer.kind() != PeerKind::Bywash) {
            let program = std::env::var_os("BYWASH_ENVOY").filter(|_| peer == Peer::Envoy);
            let program = program.map_or_else(|| peer.kind().to_string().into(), PathBuf::from);
            if let Err(why) = peer.kind().version(&program) {
                // Shown only with --nocapture, as in continuous integration.
                eprintln!("NOT TESTED: {peer} is not installed: {why}");
                continue;
            }
            for limit in [1, 4, 1000] {
                let scratch = Scratch::new(&format!("config-{peer}-{limit}")).unwrap();
                let file = peer.configure(&scenario(), settings(scratch.path(), limit)).unwrap();
                let check = peer.kind().check(&program, &file);
                assert!(check.is_ok(), "{peer} at {limit}: {}", check.unwrap_err());
            }
        }
    }
}
