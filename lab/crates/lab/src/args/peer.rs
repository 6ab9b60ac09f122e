//! The names of the peers on the command line.

use std::fmt;

/// A proxy in front of the shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Peer {
    /// bywash without tuning
    Bywash,
    /// bywash that ranks by value, which it has learned in a quiet run
    BywashLearned,
    /// bywash with every decision switched off: a plain proxy
    BywashPlain,
    /// `HAProxy` with an ordinary configuration
    Haproxy,
    /// `HAProxy` with an expert's configuration
    HaproxyExpert,
    /// `HAProxy` with an expert's configuration that knows which signals buyers show
    HaproxyTold,
    /// nginx, which refuses and has no queue
    Nginx,
    /// Envoy, which finds its concurrency limit itself
    Envoy,
}

impl Peer {
    pub(crate) const ALL: [Self; 8] = [
        Self::Bywash,
        Self::BywashLearned,
        Self::BywashPlain,
        Self::Haproxy,
        Self::HaproxyExpert,
        Self::HaproxyTold,
        Self::Nginx,
        Self::Envoy,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bywash => "bywash",
            Self::BywashLearned => "bywash-learned",
            Self::BywashPlain => "bywash-plain",
            Self::Haproxy => "haproxy",
            Self::HaproxyExpert => "haproxy-expert",
            Self::HaproxyTold => "haproxy-told",
            Self::Nginx => "nginx",
            Self::Envoy => "envoy",
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
