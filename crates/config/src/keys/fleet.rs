//! The keys of `[fleet]`: several gateways that share the slots of one application.

use super::TOKEN;
use crate::key::{Key, Section};
use crate::kind::ValueKind;

pub(crate) static FLEET: Section = Section {
    name: "fleet",
    about: "Several gateways in front of one application. They share its slots by messages on \
            NATS servers. Each gateway has the same upstream.limit, which is that of all gateways \
            together. A gateway without contact uses an equal share.",
    keys: &[
        FLEET_NAME,
        GATEWAYS,
        NATS_SERVERS,
        SUBJECT,
        LIVENESS,
        FLEET_KEY_FILE,
        NATS_USER,
        NATS_PASSWORD_FILE,
        NKEY_FILE,
        NATS_CA_FILE,
    ],
};

/// The regular expression of the name of a gateway.
const NAME: &str = "^[a-z0-9][a-z0-9._-]{0,62}$";

pub(crate) const FLEET_NAME: Key = Key::optional(
    "name",
    ValueKind::Text { takes: "the name of a gateway", regex: NAME },
    "gateway-1",
    "The name of this gateway. If not set, it belongs to no fleet.",
);
pub(crate) const GATEWAYS: Key = Key::optional(
    "gateways",
    ValueKind::Texts { of: "names of gateways", regex: NAME, least: 1, most: 1000, alone: false },
    "gateway-1, gateway-2",
    "The names of all gateways of the fleet, also of those that do not run now. Each gateway owns \
     an equal share of the slots, and the fleet must not have others.",
);
pub(crate) const NATS_SERVERS: Key = Key::optional(
    "servers",
    ValueKind::Texts {
        of: "URLs of NATS servers",
        regex: "^(nats|tls)://[^/@\\s]+$",
        least: 1,
        most: 16,
        alone: true,
    },
    "nats://127.0.0.1:4222",
    "The NATS servers: nats://HOST:PORT, or tls://HOST:PORT for TLS.",
);
pub(crate) const SUBJECT: Key = Key::new(
    "subject",
    ValueKind::Text { takes: "a subject of NATS", regex: "^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$" },
    "bywash",
    "The first part of the subjects of the fleet's messages. Two fleets on the same NATS servers \
     need different ones.",
);
pub(crate) const LIVENESS: Key = Key::optional(
    "liveness",
    ValueKind::Texts {
        of: "addresses of gateways",
        regex: "^(\\[[0-9a-fA-F:.]+\\]|[0-9.]+):[0-9]{1,5}$",
        least: 1,
        most: 1000,
        alone: false,
    },
    "10.0.0.21:7073, 10.0.0.22:7073",
    "An address for each of `gateways`, in the same order. A gateway listens on its own for as \
     long as its process lives. If the port is closed, the process has ended, and the others use \
     its share. If not set, they do not. Other programs must not listen there, and no firewall \
     may refuse connections to it.",
);
pub(crate) const FLEET_KEY_FILE: Key = Key::optional(
    "key_file",
    ValueKind::Path,
    "/etc/bywash/fleet.keys",
    "The file with the keys that sign the messages. `bywash token-keys` makes it. Each gateway of \
     the fleet has the same file. Other users must not be able to read it.",
);
pub(crate) const NATS_USER: Key = Key::optional(
    "user",
    ValueKind::Text { takes: "the name of a user", regex: TOKEN },
    "bywash",
    "The name of the user of the NATS servers. It needs `password_file`.",
);
pub(crate) const NATS_PASSWORD_FILE: Key = Key::optional(
    "password_file",
    ValueKind::Path,
    "/etc/bywash/nats.password",
    "The file with the password for the NATS servers, on one line. Other users must not be able to \
     read it.",
);
pub(crate) const NKEY_FILE: Key = Key::optional(
    "nkey_file",
    ValueKind::Path,
    "/etc/bywash/nats.nk",
    "The file with the seed of an NKey, instead of user and password. Other users must not be able \
     to read it.",
);
pub(crate) const NATS_CA_FILE: Key = Key::optional(
    "ca_file",
    ValueKind::Path,
    "/etc/bywash/nats-ca.pem",
    "The certificates of the authorities that have signed those of the NATS servers. If not set, \
     those that this machine trusts.",
);
